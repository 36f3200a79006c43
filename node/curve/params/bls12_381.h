/* BLS12-381: every constant of host and device, in 64-bit little-endian words.
 *
 * Written by derive.py from x = -0xd201000000010000; change that file, never this one. A brace list
 * initialises an array of words. Unless said otherwise a field element is in Montgomery form (R = 2^(64 limbs)),
 * an element of fp2 is two of them, _C0 and _C1. Source: draft-irtf-cfrg-pairing-friendly-curves, 4.2.1.
 */
#pragma once
// clang-format off

#define CURVE_NAME "bls12_381"
#define CURVE_SNARKJS_NAME "bls12381"
#define CURVE_ID 2 /* as enum curve_id */
#define CURVE_IS_BN 0 /* family: BN, else BLS12 */
#define CURVE_X 0xd201000000010000ULL /* |x|, the family's parameter */
#define CURVE_X_IS_NEGATIVE 1

/* Coordinates: integers mod p. */
#define FP_LIMBS 6
#define FP_BITS 381
#define FP_P {0xb9feffffffffaaabULL, 0x1eabfffeb153ffffULL, 0x6730d2a0f6b0f624ULL, 0x64774b84f38512bfULL, 0x4b1ba7b6434bacd7ULL, 0x1a0111ea397fe69aULL} /* the modulus */
#define FP_NINV 0x89f3fffcfffcfffdULL /* -1/p mod 2^64; its low half is -1/p mod 2^32 */
#define FP_R1 {0x760900000002fffdULL, 0xebf4000bc40c0002ULL, 0x5f48985753c758baULL, 0x77ce585370525745ULL, 0x5c071a97a256ec6dULL, 0x15f65ec3fa80e493ULL} /* R mod p: one in Montgomery form */
#define FP_R2 {0xf4df1f341c341746ULL, 0xa76e6a609d104f1ULL, 0x8de5476c4c95b6d5ULL, 0x67eb88a9939d83c0ULL, 0x9a793e85b519952dULL, 0x11988fe592cae3aaULL}
#define FP_R3 {0xed48ac6bd94ca1e0ULL, 0x315f831e03a7adf8ULL, 0x9a53352a615e29ddULL, 0x34c04e5e921e1761ULL, 0x2512d43565724728ULL, 0xaa6346091755d4dULL}
#define FP_HALF {0xdcff7fffffffd555ULL, 0xf55ffff58a9ffffULL, 0xb39869507b587b12ULL, 0xb23ba5c279c2895fULL, 0x258dd3db21a5d66bULL, 0xd0088f51cbff34dULL} /* (p - 1)/2, a plain integer */
#define FP_TWO_INV {0x1804000000015554ULL, 0x855000053ab00001ULL, 0x633cb57c253c276fULL, 0x6e22d1ec31ebb502ULL, 0xd3916126f2d14ca2ULL, 0x17fbb8571a006596ULL} /* 1/2, Montgomery */
#define FP_LIMBS52 8
#define FP_P52 {0xeffffffffaaabULL, 0xfeb153ffffb9fULL, 0x6b0f6241eabffULL, 0x12bf6730d2a0fULL, 0x764774b84f385ULL, 0x1ba7b6434bacdULL, 0x1ea397fe69a4bULL, 0x1a011ULL}
#define FP_P2_52 {0xdffffffff5556ULL, 0xfd62a7ffff73fULL, 0xd61ec483d57ffULL, 0x257ece61a541eULL, 0xec8ee9709e70aULL, 0x374f6c869759aULL, 0x3d472ffcd3496ULL, 0x34022ULL}
#define FP_P4_52 {0xbfffffffeaaacULL, 0xfac54ffffee7fULL, 0xac3d8907aafffULL, 0x4afd9cc34a83dULL, 0xd91dd2e13ce14ULL, 0x6e9ed90d2eb35ULL, 0x7a8e5ff9a692cULL, 0x68044ULL}
#define FP_P6_52 {0x9fffffffe0002ULL, 0xf827f7fffe5bfULL, 0x825c4d8b807ffULL, 0x707c6b24efc5cULL, 0xc5acbc51db51eULL, 0xa5ee4593c60d0ULL, 0xb7d58ff679dc2ULL, 0x9c066ULL}
#define FP_NINV52 0x3fffcfffcfffdULL
#define FP_R1_52 {0x6480ea8e9b9afULL, 0x65766c8fe444fULL, 0x8b540fea96f7dULL, 0x3b2ee82efd422ULL, 0xa6723e5f0ade5ULL, 0xff6eb6fdd4230ULL, 0xe06ef23c24a25ULL, 0x14c8eULL} /* R52 = 2^(52 limbs52) mod p */
#define FP_R2_52 {0xa5bf4cb89af51ULL, 0x3afbba7ca31a2ULL, 0x2646160ec71f1ULL, 0xa84d710465903ULL, 0x3480a4a188311ULL, 0x98e5907ad91f5ULL, 0x2075d74507266ULL, 0x8746ULL}
#define FP_OUT52 {0x900000002fffdULL, 0xbc40c0002760ULL, 0x3c758baebf400ULL, 0x57455f4898575ULL, 0xd77ce58537052ULL, 0x71a97a256ec6ULL, 0xec3fa80e4935cULL, 0x15f65ULL} /* 52-bit product of x*R52 and this is x*R */
#define FP_IN64 {0x44f6480ea8e9b9afULL, 0xa96f7d65766c8fe4ULL, 0xe82efd4228b540feULL, 0x6723e5f0ade53b2eULL, 0x25ff6eb6fdd4230aULL, 0x14c8ee06ef23c24aULL} /* 64-bit product of x*R and this is x*R52 */
#define FP_OUTS {0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL, 0x100000000ULL} /* 64-bit product of x*R52 and this is x*R */
#define FP_SHIFT 32 /* x*R shifted left by this is x*R52, unreduced */
#define FP_IS_3_MOD_4 1
#define FP_SQRT_EXPONENT {0xee7fbfffffffeaabULL, 0x7aaffffac54ffffULL, 0xd9cc34a83dac3d89ULL, 0xd91dd2e13ce144afULL, 0x92c6e9ed90d2eb35ULL, 0x680447a8e5ff9a6ULL} /* p = 3 mod 4: a root of a is a^((p+1)/4) */

/* Scalars: integers mod r. */
#define FR_LIMBS 4
#define FR_BITS 255
#define FR_P {0xffffffff00000001ULL, 0x53bda402fffe5bfeULL, 0x3339d80809a1d805ULL, 0x73eda753299d7d48ULL} /* the modulus */
#define FR_NINV 0xfffffffeffffffffULL /* -1/p mod 2^64; its low half is -1/p mod 2^32 */
#define FR_R1 {0x1fffffffeULL, 0x5884b7fa00034802ULL, 0x998c4fefecbc4ff5ULL, 0x1824b159acc5056fULL} /* R mod p: one in Montgomery form */
#define FR_R2 {0xc999e990f3f29c6dULL, 0x2b6cedcb87925c23ULL, 0x5d314967254398fULL, 0x748d9d99f59ff11ULL}
#define FR_R3 {0xc62c1807439b73afULL, 0x1b3e0d188cf06990ULL, 0x73d13c71c7b5f418ULL, 0x6e2a5bb9c8db33e9ULL}
#define FR_HALF {0x7fffffff80000000ULL, 0xa9ded2017fff2dffULL, 0x199cec0404d0ec02ULL, 0x39f6d3a994cebea4ULL} /* (p - 1)/2, a plain integer */
#define FR_TWO_INV {0xffffffffULL, 0xac425bfd0001a401ULL, 0xccc627f7f65e27faULL, 0xc1258acd66282b7ULL} /* 1/2, Montgomery */
#define FR_LIMBS52 5
#define FR_P52 {0xfffff00000001ULL, 0x2fffe5bfefffULL, 0x9a1d80553bda4ULL, 0x7d483339d8080ULL, 0x73eda753299dULL}
#define FR_P2_52 {0xffffe00000002ULL, 0x5fffcb7fdfffULL, 0x343b00aa77b48ULL, 0xfa906673b0101ULL, 0xe7db4ea6533aULL}
#define FR_P4_52 {0xffffc00000004ULL, 0xbfff96ffbfffULL, 0x68760154ef690ULL, 0xf520cce760202ULL, 0x1cfb69d4ca675ULL}
#define FR_P6_52 {0xffffa00000006ULL, 0x11fff627f9fffULL, 0x9cb101ff671d8ULL, 0xefb1335b10303ULL, 0x2b791ebf2f9b0ULL}
#define FR_NINV52 0xffffeffffffffULL
#define FR_R1_52 {0x22ffffffddULL, 0x9700396c23000ULL, 0xedf77458d1293ULL, 0xdf20ff1776e6aULL, 0x26821fa14f77ULL} /* R52 = 2^(52 limbs52) mod p */
#define FR_R2_52 {0x99103f29c6cf0ULL, 0x57927663d999eULL, 0xa1c0ed631138bULL, 0x3c829f7715f1bULL, 0x9ff646cc027ULL}
#define FR_OUT52 {0x1fffffffeULL, 0xfa00034802000ULL, 0xcbc4ff55884b7ULL, 0x56f998c4fefeULL, 0x1824b159acc5ULL} /* 52-bit product of x*R52 and this is x*R */
#define FR_IN64 {0x22ffffffddULL, 0x8d12939700396c23ULL, 0xff1776e6aedf7745ULL, 0x26821fa14f77df20ULL} /* 64-bit product of x*R and this is x*R52 */
#define FR_OUTS {0x0ULL, 0x0ULL, 0x0ULL, 0x1000000000000000ULL} /* 64-bit product of x*R52 and this is x*R */
#define FR_SHIFT 4 /* x*R shifted left by this is x*R52, unreduced */
#define FR_IS_3_MOD_4 0
#define FR_TWO_ADICITY 32
#define FR_GENERATOR_SNARKJS 5 /* a non-residue, plain integer */
#define FR_ROOT_SNARKJS {0x9cab6d5c0c17f47cULL, 0x1ce1e93dfd4b71e5ULL, 0xd6db230471dd505ULL, 0x3f0ee990743a3b6aULL} /* 5^((r-1)/2^32): order 2^32 */
#define FR_GENERATOR_BELLMAN 7 /* a non-residue, plain integer */
#define FR_ROOT_BELLMAN {0xb9b58d8c5f0e466aULL, 0x5b1b4c801819d7ecULL, 0xaf53ae352a31e64ULL, 0x5bf3adda19e9b27bULL} /* 7^((r-1)/2^32): order 2^32 */

/* G1: y^2 = x^3 + b over fp. */
#define G1_B {0xaa270000000cfff3ULL, 0x53cc0032fc34000aULL, 0x478fe97a6b0a807fULL, 0xb1d37ebee6ba24d7ULL, 0x8ec9733bbf78ab2fULL, 0x9d645513d83de7eULL}
#define G1_GENERATOR {0x5cb38790fd530c16ULL, 0x7817fc679976fff5ULL, 0x154f95c7143ba1c1ULL, 0xf0ae6acdf3d0e747ULL, 0xedce6ecc21dbf440ULL, 0x120177419e0bfb75ULL, 0xbaac93d50ce72271ULL, 0x8c22631a7918fd8eULL, 0xdd595f13570725ceULL, 0x51ac582950405194ULL, 0xe1c8c3fad0059c0ULL, 0xbbc3efc5008a26aULL} /* x, y */
#define G1_COFACTOR_WORDS 2
#define G1_COFACTOR {0x8c00aaab0000aaabULL, 0x396c8c005555e156ULL}
#define G1_BETA {0x30f1361b798a64e8ULL, 0xf3b8ddab7ece5a2aULL, 0x16a8ca3ac61577f7ULL, 0xc26a2ff874fd029bULL, 0x3636b76660701c6eULL, 0x51ba4ab241b6160ULL} /* (x, y) to (beta x, y) is multiplication by G1_LAMBDA */
#define G1_LAMBDA {0xfffffffe00000001ULL, 0xa7780001fffcb7fcULL, 0x3339d80809a1d804ULL, 0x73eda753299d7d48ULL} /* plain integer mod r; -x^2 */

/* G2: y^2 = x^3 + b over fp2 = fp[u]/(u^2 + 1). */
#define G2_B_C0 {0xaa270000000cfff3ULL, 0x53cc0032fc34000aULL, 0x478fe97a6b0a807fULL, 0xb1d37ebee6ba24d7ULL, 0x8ec9733bbf78ab2fULL, 0x9d645513d83de7eULL} /* b*xi */
#define G2_B_C1 {0xaa270000000cfff3ULL, 0x53cc0032fc34000aULL, 0x478fe97a6b0a807fULL, 0xb1d37ebee6ba24d7ULL, 0x8ec9733bbf78ab2fULL, 0x9d645513d83de7eULL}
#define G2_GENERATOR {0xf5f28fa202940a10ULL, 0xb3f5fb2687b4961aULL, 0xa1a893b53e2ae580ULL, 0x9894999d1a3caee9ULL, 0x6f67b7631863366bULL, 0x58191924350bcd7ULL, 0xa5a9c0759e23f606ULL, 0xaaa0c59dbccd60c3ULL, 0x3bb17e18e2867806ULL, 0x1b1ab6cc8541b367ULL, 0xc2b6ed0ef2158547ULL, 0x11922a097360edf3ULL, 0x4c730af860494c4aULL, 0x597cfa1f5e369c5aULL, 0xe7e6856caa0a635aULL, 0xbbefb5e96e0d495fULL, 0x7d3a975f0ef25a2ULL, 0x83fd8e7e80dae5ULL, 0xadc0fc92df64b05dULL, 0x18aa270a2b1461dcULL, 0x86adac6a3be4eba0ULL, 0x79495c4ec93da33aULL, 0xe7175850a43ccaedULL, 0xb2bc2a163de1bf2ULL} /* x.c0, x.c1, y.c0, y.c1 */
#define G2_COFACTOR_WORDS 8
#define G2_COFACTOR {0xcf1c38e31c7238e5ULL, 0x1616ec6e786f0c70ULL, 0x21537e293a6691aeULL, 0xa628f1cb4d9e82efULL, 0xa68a205b2e5a7ddfULL, 0xcd91de4547085abaULL, 0x91d50792876a202ULL, 0x5d543a95414e7f1ULL}
#define G2_PSI_X_C0 {0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL} /* psi(x, y) = (conj(x) PSI_X, conj(y) PSI_Y): multiplication by p on G2 */
#define G2_PSI_X_C1 {0x890dc9e4867545c3ULL, 0x2af322533285a5d5ULL, 0x50880866309b7e2cULL, 0xa20d1b8c7e881024ULL, 0x14e4f04fe2db9068ULL, 0x14e56d3f1564853aULL}
#define G2_PSI_Y_C0 {0x3e2f585da55c9ad1ULL, 0x4294213d86c18183ULL, 0x382844c88b623732ULL, 0x92ad2afd19103e18ULL, 0x1d794e4fac7cf0b9ULL, 0xbd592fc7d825ec8ULL}
#define G2_PSI_Y_C1 {0x7bcfa7a25aa30fdaULL, 0xdc17dec12a927e7cULL, 0x2f088dd86b4ebef1ULL, 0xd1ca2087da74d4a7ULL, 0x2da2596696cebc1dULL, 0xe2b7eedbbfd87d2ULL}

/* Tower: fp6 = fp2[v]/(v^3 - xi), fp12 = fp6[w]/(w^2 - v). */
#define XI_C0 1 /* xi = XI_C0 + u */
#define TWIST_IS_D 0 /* D: (x, y) untwists to (x w^2, y w^3); M: (x/w^2, y/w^3) */
#define FROBENIUS1_V_C0 {0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL} /* v^(p^1 - 1) */
#define FROBENIUS1_V_C1 {0xcd03c9e48671f071ULL, 0x5dab22461fcda5d2ULL, 0x587042afd3851b95ULL, 0x8eb60ebe01bacb9eULL, 0x3f97d6e83d050d2ULL, 0x18f0206554638741ULL}
#define FROBENIUS1_VV_C0 {0x890dc9e4867545c3ULL, 0x2af322533285a5d5ULL, 0x50880866309b7e2cULL, 0xa20d1b8c7e881024ULL, 0x14e4f04fe2db9068ULL, 0x14e56d3f1564853aULL} /* v^2(p^1 - 1) */
#define FROBENIUS1_VV_C1 {0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL}
#define FROBENIUS1_W_C0 {0x7089552b319d465ULL, 0xc6695f92b50a8313ULL, 0x97e83cccd117228fULL, 0xa35baecab2dc29eeULL, 0x1ce393ea5daace4dULL, 0x8f2220fb0fb66ebULL} /* w^(p^1 - 1) */
#define FROBENIUS1_W_C1 {0xb2f66aad4ce5d646ULL, 0x5842a06bfc497cecULL, 0xcf4895d42599d394ULL, 0xc11b9cba40a8e8d0ULL, 0x2e3813cbe5a0de89ULL, 0x110eefda88847fafULL}
#define FROBENIUS2_V_C0 {0x30f1361b798a64e8ULL, 0xf3b8ddab7ece5a2aULL, 0x16a8ca3ac61577f7ULL, 0xc26a2ff874fd029bULL, 0x3636b76660701c6eULL, 0x51ba4ab241b6160ULL} /* v^(p^2 - 1) */
#define FROBENIUS2_V_C1 {0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL}
#define FROBENIUS2_VV_C0 {0xcd03c9e48671f071ULL, 0x5dab22461fcda5d2ULL, 0x587042afd3851b95ULL, 0x8eb60ebe01bacb9eULL, 0x3f97d6e83d050d2ULL, 0x18f0206554638741ULL} /* v^2(p^2 - 1) */
#define FROBENIUS2_VV_C1 {0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL}
#define FROBENIUS2_W_C0 {0xecfb361b798dba3aULL, 0xc100ddb891865a2cULL, 0xec08ff1232bda8eULL, 0xd5c13cc6f1ca4721ULL, 0x47222a47bf7b5c04ULL, 0x110f184e51c5f59ULL} /* w^(p^2 - 1) */
#define FROBENIUS2_W_C1 {0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL}
#define FROBENIUS3_V_C0 {0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL} /* v^(p^3 - 1) */
#define FROBENIUS3_V_C1 {0x760900000002fffdULL, 0xebf4000bc40c0002ULL, 0x5f48985753c758baULL, 0x77ce585370525745ULL, 0x5c071a97a256ec6dULL, 0x15f65ec3fa80e493ULL}
#define FROBENIUS3_VV_C0 {0x43f5fffffffcaaaeULL, 0x32b7fff2ed47fffdULL, 0x7e83a49a2e99d69ULL, 0xeca8f3318332bb7aULL, 0xef148d1ea0f4c069ULL, 0x40ab3263eff0206ULL} /* v^2(p^3 - 1) */
#define FROBENIUS3_VV_C1 {0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL}
#define FROBENIUS3_W_C0 {0x3e2f585da55c9ad1ULL, 0x4294213d86c18183ULL, 0x382844c88b623732ULL, 0x92ad2afd19103e18ULL, 0x1d794e4fac7cf0b9ULL, 0xbd592fc7d825ec8ULL} /* w^(p^3 - 1) */
#define FROBENIUS3_W_C1 {0x7bcfa7a25aa30fdaULL, 0xdc17dec12a927e7cULL, 0x2f088dd86b4ebef1ULL, 0xd1ca2087da74d4a7ULL, 0x2da2596696cebc1dULL, 0xe2b7eedbbfd87d2ULL}

/* Optimal ate: |x| in signed digits, most significant first. */
#define ATE_LOOP_DIGITS 65
#define ATE_LOOP {1, 0, -1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

// clang-format on
