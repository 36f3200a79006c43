/* The Montgomery product in rows of mulx with two carry chains: adcx on the carry flag, adox on the overflow flag.
 *
 * Part of field_tmpl.h (threads as there), which includes it where FIELD_USE_ADX asks for it; never included by anything else. One asm
 * statement a row, so that the compiler still picks the registers: a row of a·b[i] appends a word, a row of m·p frees
 * the lowest, and the names of the words move on by one. Two carry words fit because p leaves a spare bit.
 *
 * Cost     BN254 178 instructions against 364 (gcc) or 250 (clang) of the C body; BLS12-381 338 against 810 or 522.
 */
// clang-format off
#if FIELD_LIMBS == 4
#define FIELD_ROW_AB(b, t0, t1, t2, t3, t4) \
    asm("xorl %%eax, %%eax\n\t" \
        "mulxq %[a0], %%rax, %[high]\n\tadcxq %%rax, %[T0]\n\tadoxq %[high], %[T1]\n\t" \
        "mulxq %[a1], %%rax, %[high]\n\tadcxq %%rax, %[T1]\n\tadoxq %[high], %[T2]\n\t" \
        "mulxq %[a2], %%rax, %[high]\n\tadcxq %%rax, %[T2]\n\tadoxq %[high], %[T3]\n\t" \
        "mulxq %[a3], %%rax, %[T4]\n\tadcxq %%rax, %[T3]\n\t" \
        "movl $0, %%eax\n\tadoxq %%rax, %[T4]\n\tadcxq %%rax, %[T4]" \
        : [T0] "+&r"(t0), [T1] "+&r"(t1), [T2] "+&r"(t2), [T3] "+&r"(t3), [T4] "=&r"(t4), [high] "=&r"(high) \
        : "d"(b), [a0] "m"(a->w[0]), [a1] "m"(a->w[1]), [a2] "m"(a->w[2]), [a3] "m"(a->w[3]) \
        : "rax", "cc")
#define FIELD_ROW_MP(t0, t1, t2, t3, t4) \
    asm("xorl %%eax, %%eax\n\t" \
        "mulxq %[p0], %%rax, %[high]\n\tadcxq %[T0], %%rax\n\tadoxq %[high], %[T1]\n\t" \
        "mulxq %[p1], %%rax, %[high]\n\tadcxq %%rax, %[T1]\n\tadoxq %[high], %[T2]\n\t" \
        "mulxq %[p2], %%rax, %[high]\n\tadcxq %%rax, %[T2]\n\tadoxq %[high], %[T3]\n\t" \
        "mulxq %[p3], %%rax, %[high]\n\tadcxq %%rax, %[T3]\n\tadoxq %[high], %[T4]\n\t" \
        "movl $0, %%eax\n\tadcxq %%rax, %[T4]" \
        : [T1] "+&r"(t1), [T2] "+&r"(t2), [T3] "+&r"(t3), [T4] "+&r"(t4), [high] "=&r"(high) \
        : [T0] "r"(t0), "d"(t0 * C(NINV)), [p0] "m"(F(modulus).w[0]), [p1] "m"(F(modulus).w[1]), [p2] "m"(F(modulus).w[2]), [p3] "m"(F(modulus).w[3]) \
        : "rax", "cc")
static inline void F(mul_adx)(FIELD *out, const FIELD *a, const FIELD *b) {
    uint64_t t0 = 0, t1 = 0, t2 = 0, t3 = 0, t4, high;
    FIELD_ROW_AB(b->w[0], t0, t1, t2, t3, t4);
    FIELD_ROW_MP(t0, t1, t2, t3, t4);
    FIELD_ROW_AB(b->w[1], t1, t2, t3, t4, t0);
    FIELD_ROW_MP(t1, t2, t3, t4, t0);
    FIELD_ROW_AB(b->w[2], t2, t3, t4, t0, t1);
    FIELD_ROW_MP(t2, t3, t4, t0, t1);
    FIELD_ROW_AB(b->w[3], t3, t4, t0, t1, t2);
    FIELD_ROW_MP(t3, t4, t0, t1, t2);
    const uint64_t t[4] = {t4, t0, t1, t2};
    F(reduce)(out, t);
}
#elif FIELD_LIMBS == 6
#define FIELD_ROW_AB(b, t0, t1, t2, t3, t4, t5, t6) \
    asm("xorl %%eax, %%eax\n\t" \
        "mulxq %[a0], %%rax, %[high]\n\tadcxq %%rax, %[T0]\n\tadoxq %[high], %[T1]\n\t" \
        "mulxq %[a1], %%rax, %[high]\n\tadcxq %%rax, %[T1]\n\tadoxq %[high], %[T2]\n\t" \
        "mulxq %[a2], %%rax, %[high]\n\tadcxq %%rax, %[T2]\n\tadoxq %[high], %[T3]\n\t" \
        "mulxq %[a3], %%rax, %[high]\n\tadcxq %%rax, %[T3]\n\tadoxq %[high], %[T4]\n\t" \
        "mulxq %[a4], %%rax, %[high]\n\tadcxq %%rax, %[T4]\n\tadoxq %[high], %[T5]\n\t" \
        "mulxq %[a5], %%rax, %[T6]\n\tadcxq %%rax, %[T5]\n\t" \
        "movl $0, %%eax\n\tadoxq %%rax, %[T6]\n\tadcxq %%rax, %[T6]" \
        : [T0] "+&r"(t0), [T1] "+&r"(t1), [T2] "+&r"(t2), [T3] "+&r"(t3), [T4] "+&r"(t4), [T5] "+&r"(t5), [T6] "=&r"(t6), [high] "=&r"(high) \
        : "d"(b), [a0] "m"(a->w[0]), [a1] "m"(a->w[1]), [a2] "m"(a->w[2]), [a3] "m"(a->w[3]), [a4] "m"(a->w[4]), [a5] "m"(a->w[5]) \
        : "rax", "cc")
#define FIELD_ROW_MP(t0, t1, t2, t3, t4, t5, t6) \
    asm("xorl %%eax, %%eax\n\t" \
        "mulxq %[p0], %%rax, %[high]\n\tadcxq %[T0], %%rax\n\tadoxq %[high], %[T1]\n\t" \
        "mulxq %[p1], %%rax, %[high]\n\tadcxq %%rax, %[T1]\n\tadoxq %[high], %[T2]\n\t" \
        "mulxq %[p2], %%rax, %[high]\n\tadcxq %%rax, %[T2]\n\tadoxq %[high], %[T3]\n\t" \
        "mulxq %[p3], %%rax, %[high]\n\tadcxq %%rax, %[T3]\n\tadoxq %[high], %[T4]\n\t" \
        "mulxq %[p4], %%rax, %[high]\n\tadcxq %%rax, %[T4]\n\tadoxq %[high], %[T5]\n\t" \
        "mulxq %[p5], %%rax, %[high]\n\tadcxq %%rax, %[T5]\n\tadoxq %[high], %[T6]\n\t" \
        "movl $0, %%eax\n\tadcxq %%rax, %[T6]" \
        : [T1] "+&r"(t1), [T2] "+&r"(t2), [T3] "+&r"(t3), [T4] "+&r"(t4), [T5] "+&r"(t5), [T6] "+&r"(t6), [high] "=&r"(high) \
        : [T0] "r"(t0), "d"(t0 * C(NINV)), [p0] "m"(F(modulus).w[0]), [p1] "m"(F(modulus).w[1]), [p2] "m"(F(modulus).w[2]), [p3] "m"(F(modulus).w[3]), [p4] "m"(F(modulus).w[4]), [p5] "m"(F(modulus).w[5]) \
        : "rax", "cc")
static inline void F(mul_adx)(FIELD *out, const FIELD *a, const FIELD *b) {
    uint64_t t0 = 0, t1 = 0, t2 = 0, t3 = 0, t4 = 0, t5 = 0, t6, high;
    FIELD_ROW_AB(b->w[0], t0, t1, t2, t3, t4, t5, t6);
    FIELD_ROW_MP(t0, t1, t2, t3, t4, t5, t6);
    FIELD_ROW_AB(b->w[1], t1, t2, t3, t4, t5, t6, t0);
    FIELD_ROW_MP(t1, t2, t3, t4, t5, t6, t0);
    FIELD_ROW_AB(b->w[2], t2, t3, t4, t5, t6, t0, t1);
    FIELD_ROW_MP(t2, t3, t4, t5, t6, t0, t1);
    FIELD_ROW_AB(b->w[3], t3, t4, t5, t6, t0, t1, t2);
    FIELD_ROW_MP(t3, t4, t5, t6, t0, t1, t2);
    FIELD_ROW_AB(b->w[4], t4, t5, t6, t0, t1, t2, t3);
    FIELD_ROW_MP(t4, t5, t6, t0, t1, t2, t3);
    FIELD_ROW_AB(b->w[5], t5, t6, t0, t1, t2, t3, t4);
    FIELD_ROW_MP(t5, t6, t0, t1, t2, t3, t4);
    const uint64_t t[6] = {t6, t0, t1, t2, t3, t4};
    F(reduce)(out, t);
}
#else
#error "no rows for this many limbs"
#endif
#undef FIELD_ROW_AB
#undef FIELD_ROW_MP
// clang-format on
