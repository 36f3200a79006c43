/* In which basis a key's H stands: a constant. By itself, so that what is compiled once per curve and processor does not hang on keys. */
#pragma once

enum h_basis {
    H_COSET_LAGRANGE = 1, /* snarkjs: domain_size points, division by Z inside the points */
    H_POWERS = 2          /* bellman: domain_size - 1 points, powers of tau times Z/delta */
};
