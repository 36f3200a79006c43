/* BN254: every constant of host and device, in 64-bit little-endian words.
 *
 * Written by derive.py from x = 0x44e992b44a6909f1; change that file, never this one. A brace list
 * initialises an array of words. Unless said otherwise a field element is in Montgomery form (R = 2^(64 limbs)),
 * an element of fp2 is two of them, _C0 and _C1. Source: EIP-196, EIP-197.
 */
#pragma once
// clang-format off

#define CURVE_NAME "bn254"
#define CURVE_SNARKJS_NAME "bn128"
#define CURVE_ID 1 /* as enum curve_id */
#define CURVE_IS_BN 1 /* family: BN, else BLS12 */
#define CURVE_X 0x44e992b44a6909f1ULL /* |x|, the family's parameter */
#define CURVE_X_IS_NEGATIVE 0

/* Coordinates: integers mod p. */
#define FP_LIMBS 4
#define FP_BITS 254
#define FP_P {0x3c208c16d87cfd47ULL, 0x97816a916871ca8dULL, 0xb85045b68181585dULL, 0x30644e72e131a029ULL} /* the modulus */
#define FP_NINV 0x87d20782e4866389ULL /* -1/p mod 2^64; its low half is -1/p mod 2^32 */
#define FP_R1 {0xd35d438dc58f0d9dULL, 0xa78eb28f5c70b3dULL, 0x666ea36f7879462cULL, 0xe0a77c19a07df2fULL} /* R mod p: one in Montgomery form */
#define FP_R2 {0xf32cfc5b538afa89ULL, 0xb5e71911d44501fbULL, 0x47ab1eff0a417ff6ULL, 0x6d89f71cab8351fULL}
#define FP_R3 {0xb1cd6dafda1530dfULL, 0x62f210e6a7283db6ULL, 0xef7f0b0c0ada0afbULL, 0x20fd6e902d592544ULL}
#define FP_HALF {0x9e10460b6c3e7ea3ULL, 0xcbc0b548b438e546ULL, 0xdc2822db40c0ac2eULL, 0x183227397098d014ULL} /* (p - 1)/2, a plain integer */
#define FP_TWO_INV {0x87bee7d24f060572ULL, 0xd0fd2add2f1c6ae5ULL, 0x8f5f7492fcfd4f44ULL, 0x1f37631a3d9cbfacULL} /* 1/2, Montgomery */
#define FP_LIMBS52 5
#define FP_P52 {0x8c16d87cfd47ULL, 0x916871ca8d3c2ULL, 0x181585d97816aULL, 0xa029b85045b68ULL, 0x30644e72e131ULL}
#define FP_P2_52 {0x1182db0f9fa8eULL, 0x22d0e3951a784ULL, 0x302b0bb2f02d5ULL, 0x405370a08b6d0ULL, 0x60c89ce5c263ULL}
#define FP_P4_52 {0x2305b61f3f51cULL, 0x45a1c72a34f08ULL, 0x60561765e05aaULL, 0x80a6e14116da0ULL, 0xc19139cb84c6ULL}
#define FP_P6_52 {0x3488912edefaaULL, 0x6872aabf4f68cULL, 0x90812318d087fULL, 0xc0fa51e1a2470ULL, 0x12259d6b14729ULL}
#define FP_NINV52 0x20782e4866389ULL
#define FP_R1_52 {0x20880f6fce4b4ULL, 0x49baa989a8455ULL, 0x18f014a498908ULL, 0x724f85a9201d8ULL, 0x1f16424e1bb7ULL} /* R52 = 2^(52 limbs52) mod p */
#define FP_R2_52 {0x8a81d1966eb04ULL, 0x6195018016b86ULL, 0xb4f898c98e615ULL, 0x9969bfd531600ULL, 0xa8469a30d3aULL}
#define FP_OUT52 {0xd438dc58f0d9dULL, 0x28f5c70b3dd35ULL, 0x879462c0a78ebULL, 0xdf2f666ea36f7ULL, 0xe0a77c19a07ULL} /* 52-bit product of x*R52 and this is x*R */
#define FP_IN64 {0x45520880f6fce4b4ULL, 0x49890849baa989a8ULL, 0x85a9201d818f014aULL, 0x1f16424e1bb7724fULL} /* 64-bit product of x*R and this is x*R52 */
#define FP_OUTS {0x0ULL, 0x0ULL, 0x0ULL, 0x1000000000000000ULL} /* 64-bit product of x*R52 and this is x*R */
#define FP_SHIFT 4 /* x*R shifted left by this is x*R52, unreduced */
#define FP_IS_3_MOD_4 1
#define FP_SQRT_EXPONENT {0x4f082305b61f3f52ULL, 0x65e05aa45a1c72a3ULL, 0x6e14116da0605617ULL, 0xc19139cb84c680aULL} /* p = 3 mod 4: a root of a is a^((p+1)/4) */

/* Scalars: integers mod r. */
#define FR_LIMBS 4
#define FR_BITS 254
#define FR_P {0x43e1f593f0000001ULL, 0x2833e84879b97091ULL, 0xb85045b68181585dULL, 0x30644e72e131a029ULL} /* the modulus */
#define FR_NINV 0xc2e1f593efffffffULL /* -1/p mod 2^64; its low half is -1/p mod 2^32 */
#define FR_R1 {0xac96341c4ffffffbULL, 0x36fc76959f60cd29ULL, 0x666ea36f7879462eULL, 0xe0a77c19a07df2fULL} /* R mod p: one in Montgomery form */
#define FR_R2 {0x1bb8e645ae216da7ULL, 0x53fe3ab1e35c59e3ULL, 0x8c49833d53bb8085ULL, 0x216d0b17f4e44a5ULL}
#define FR_R3 {0x5e94d8e1b4bf0040ULL, 0x2a489cbe1cfbb6b8ULL, 0x893cc664a19fcfedULL, 0xcf8594b7fcc657cULL}
#define FR_HALF {0xa1f0fac9f8000000ULL, 0x9419f4243cdcb848ULL, 0xdc2822db40c0ac2eULL, 0x183227397098d014ULL} /* (p - 1)/2, a plain integer */
#define FR_TWO_INV {0x783c14d81ffffffeULL, 0xaf982f6f0c8d1eddULL, 0x8f5f7492fcfd4f45ULL, 0x1f37631a3d9cbfacULL} /* 1/2, Montgomery */
#define FR_LIMBS52 5
#define FR_P52 {0x1f593f0000001ULL, 0x4879b9709143eULL, 0x181585d2833e8ULL, 0xa029b85045b68ULL, 0x30644e72e131ULL}
#define FR_P2_52 {0x3eb27e0000002ULL, 0x90f372e12287cULL, 0x302b0ba5067d0ULL, 0x405370a08b6d0ULL, 0x60c89ce5c263ULL}
#define FR_P4_52 {0x7d64fc0000004ULL, 0x21e6e5c2450f8ULL, 0x6056174a0cfa1ULL, 0x80a6e14116da0ULL, 0xc19139cb84c6ULL}
#define FR_P6_52 {0xbc177a0000006ULL, 0xb2da58a367974ULL, 0x908122ef13771ULL, 0xc0fa51e1a2470ULL, 0x12259d6b14729ULL}
#define FR_NINV52 0x1f593efffffffULL
#define FR_R1_52 {0xb6b753fffffacULL, 0x380f271055b9dULL, 0x18f016ecef7c8ULL, 0x724f85a9201d8ULL, 0x1f16424e1bb7ULL} /* R52 = 2^(52 limbs52) mod p */
#define FR_R2_52 {0xb852d16da6f5ULL, 0xc621620cddce3ULL, 0xaf1b95343ffb6ULL, 0xc3c15e103e7c2ULL, 0x281528fa122ULL}
#define FR_OUT52 {0x6341c4ffffffbULL, 0x959f60cd29ac9ULL, 0x879462e36fc76ULL, 0xdf2f666ea36f7ULL, 0xe0a77c19a07ULL} /* 52-bit product of x*R52 and this is x*R */
#define FR_IN64 {0xb9db6b753fffffacULL, 0xcef7c8380f271055ULL, 0x85a9201d818f016eULL, 0x1f16424e1bb7724fULL} /* 64-bit product of x*R and this is x*R52 */
#define FR_OUTS {0x0ULL, 0x0ULL, 0x0ULL, 0x1000000000000000ULL} /* 64-bit product of x*R52 and this is x*R */
#define FR_SHIFT 4 /* x*R shifted left by this is x*R52, unreduced */
#define FR_IS_3_MOD_4 0
#define FR_TWO_ADICITY 28
#define FR_GENERATOR_SNARKJS 5 /* a non-residue, plain integer */
#define FR_ROOT_SNARKJS {0x636e735580d13d9cULL, 0xa22bf3742445ffd6ULL, 0x56452ac01eb203d8ULL, 0x1860ef942963f9e7ULL} /* 5^((r-1)/2^28): order 2^28 */
#define FR_GENERATOR_BELLMAN 7 /* a non-residue, plain integer */
#define FR_ROOT_BELLMAN {0x9632c7c5b639feb8ULL, 0x985ce3400d0ff299ULL, 0xb2dd880001b0ecd8ULL, 0x1d69070d6d98ce29ULL} /* 7^((r-1)/2^28): order 2^28 */

/* G1: y^2 = x^3 + b over fp. */
#define G1_B {0x7a17caa950ad28d7ULL, 0x1f6ac17ae15521b9ULL, 0x334bea4e696bd284ULL, 0x2a1f6744ce179d8eULL}
#define G1_GENERATOR {0xd35d438dc58f0d9dULL, 0xa78eb28f5c70b3dULL, 0x666ea36f7879462cULL, 0xe0a77c19a07df2fULL, 0xa6ba871b8b1e1b3aULL, 0x14f1d651eb8e167bULL, 0xccdd46def0f28c58ULL, 0x1c14ef83340fbe5eULL} /* x, y */
#define G1_COFACTOR_WORDS 1
#define G1_COFACTOR {0x1ULL}
#define G1_BETA {0x71930c11d782e155ULL, 0xa6bb947cffbe3323ULL, 0xaa303344d4741444ULL, 0x2c3b3f0d26594943ULL} /* (x, y) to (beta x, y) is multiplication by G1_LAMBDA */
#define G1_LAMBDA {0x8b17ea66b99c90ddULL, 0x5bfc41088d8daaa7ULL, 0xb3c4d79d41a91758ULL, 0x0ULL} /* plain integer mod r */

/* G2: y^2 = x^3 + b over fp2 = fp[u]/(u^2 + 1). */
#define G2_B_C0 {0x3bf938e377b802a8ULL, 0x20b1b273633535dULL, 0x26b7edf049755260ULL, 0x2514c6324384a86dULL} /* b/xi */
#define G2_B_C1 {0x38e7ecccd1dcff67ULL, 0x65f0b37d93ce0d3eULL, 0xd749d0dd22ac00aaULL, 0x141b9ce4a688d4dULL}
#define G2_GENERATOR {0x8e83b5d102bc2026ULL, 0xdceb1935497b0172ULL, 0xfbb8264797811adfULL, 0x19573841af96503bULL, 0xafb4737da84c6140ULL, 0x6043dd5a5802d8c4ULL, 0x9e950fc52a02f86ULL, 0x14fef0833aea7b6bULL, 0x619dfa9d886be9f6ULL, 0xfe7fd297f59e9b78ULL, 0xff9e1a62231b7dfeULL, 0x28fd7eebae9e4206ULL, 0x64095b56c71856eeULL, 0xdc57f922327d3cbbULL, 0x55f935be33351076ULL, 0xda4a0e693fd6482ULL} /* x.c0, x.c1, y.c0, y.c1 */
#define G2_COFACTOR_WORDS 4
#define G2_COFACTOR {0x345f2299c0f9fa8dULL, 0x6ceecda572a2489ULL, 0xb85045b68181585eULL, 0x30644e72e131a029ULL}
#define G2_PSI_X_C0 {0xb5773b104563ab30ULL, 0x347f91c8a9aa6454ULL, 0x7a007127242e0991ULL, 0x1956bcd8118214ecULL} /* psi(x, y) = (conj(x) PSI_X, conj(y) PSI_Y): multiplication by p on G2 */
#define G2_PSI_X_C1 {0x6e849f1ea0aa4757ULL, 0xaa1c7b6d89f89141ULL, 0xb6e713cdfae0ca3aULL, 0x26694fbb4e82ebc3ULL}
#define G2_PSI_Y_C0 {0xe4bbdd0c2936b629ULL, 0xbb30f162e133bacbULL, 0x31a9d1b6f9645366ULL, 0x253570bea500f8ddULL}
#define G2_PSI_Y_C1 {0xa1d77ce45ffe77c7ULL, 0x7affd117826d1dbULL, 0x6d16bd27bb7edc6bULL, 0x2c87200285defeccULL}

/* Tower: fp6 = fp2[v]/(v^3 - xi), fp12 = fp6[w]/(w^2 - v). */
#define XI_C0 9 /* xi = XI_C0 + u */
#define TWIST_IS_D 1 /* D: (x, y) untwists to (x w^2, y w^3); M: (x/w^2, y/w^3) */
#define FROBENIUS1_V_C0 {0xb5773b104563ab30ULL, 0x347f91c8a9aa6454ULL, 0x7a007127242e0991ULL, 0x1956bcd8118214ecULL} /* v^(p^1 - 1) */
#define FROBENIUS1_V_C1 {0x6e849f1ea0aa4757ULL, 0xaa1c7b6d89f89141ULL, 0xb6e713cdfae0ca3aULL, 0x26694fbb4e82ebc3ULL}
#define FROBENIUS1_VV_C0 {0x7361d77f843abe92ULL, 0xa5bb2bd3273411fbULL, 0x9c941f314b3e2399ULL, 0x15df9cddbb9fd3ecULL} /* v^2(p^1 - 1) */
#define FROBENIUS1_VV_C1 {0x5dddfd154bd8c949ULL, 0x62cb29a5a4445b60ULL, 0x37bc870a0c7dd2b9ULL, 0x24830a9d3171f0fdULL}
#define FROBENIUS1_W_C0 {0xaf9ba69633144907ULL, 0xca6b1d7387afb78aULL, 0x11bded5ef08a2087ULL, 0x2f34d751a1f3a7cULL} /* w^(p^1 - 1) */
#define FROBENIUS1_W_C1 {0xa222ae234c492d72ULL, 0xd00f02a4565de15bULL, 0xdc2ff3a253dfc926ULL, 0x10a75716b3899551ULL}
#define FROBENIUS2_V_C0 {0x3350c88e13e80b9cULL, 0x7dce557cdb5e56b9ULL, 0x6001b4b8b615564aULL, 0x2682e617020217e0ULL} /* v^(p^2 - 1) */
#define FROBENIUS2_V_C1 {0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL}
#define FROBENIUS2_VV_C0 {0x71930c11d782e155ULL, 0xa6bb947cffbe3323ULL, 0xaa303344d4741444ULL, 0x2c3b3f0d26594943ULL} /* v^2(p^2 - 1) */
#define FROBENIUS2_VV_C1 {0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL}
#define FROBENIUS2_W_C0 {0xca8d800500fa1bf2ULL, 0xf0c5d61468b39769ULL, 0xe201271ad0d4418ULL, 0x4290f65bad856e6ULL} /* w^(p^2 - 1) */
#define FROBENIUS2_W_C1 {0x0ULL, 0x0ULL, 0x0ULL, 0x0ULL}
#define FROBENIUS3_V_C0 {0xc9af22f716ad6badULL, 0xb311782a4aa662b2ULL, 0x19eeaf64e248c7f4ULL, 0x20273e77e3439f82ULL} /* v^(p^3 - 1) */
#define FROBENIUS3_V_C1 {0xacc02860f7ce93acULL, 0x3933d5817ba76b4cULL, 0x69e6188b446c8467ULL, 0xa46036d4417cc55ULL}
#define FROBENIUS3_VV_C0 {0x448a93a57b6762dfULL, 0xbfd62df528fdeadfULL, 0xd858f5d00e9bd47aULL, 0x6b03d4d3476ec58ULL} /* v^2(p^3 - 1) */
#define FROBENIUS3_VV_C1 {0x2b19daf4bcc936d1ULL, 0xa1a54e7a56f4299fULL, 0xb533eee05adeaef1ULL, 0x170c812b84dda0b2ULL}
#define FROBENIUS3_W_C0 {0x365316184e46d97dULL, 0xaf7129ed4c96d9fULL, 0x659da72fca1009b5ULL, 0x8116d8983a20d23ULL} /* w^(p^3 - 1) */
#define FROBENIUS3_W_C1 {0xb1df4af7c39c1939ULL, 0x3d9f02878a73bf7fULL, 0x9b2220928caf0ae0ULL, 0x26684515eff054a6ULL}

/* Optimal ate: 6x + 2 in signed digits, most significant first. */
#define ATE_LOOP_DIGITS 66
#define ATE_LOOP {1, 0, -1, 0, 1, 0, 0, 0, -1, 0, -1, 0, 0, 0, -1, 0, 1, 0, -1, 0, 0, -1, 0, 0, 0, 0, 0, 1, 0, 0, -1, 0, 1, 0, 0, -1, 0, 0, 0, 0, -1, 0, 1, 0, 0, 0, -1, 0, -1, 0, 0, 1, 0, 0, 0, -1, 0, 0, -1, 0, 1, 0, 1, 0, 0, 0}

// clang-format on
