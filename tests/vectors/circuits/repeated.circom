pragma circom 2.0.0;
// Sums of wires that occur nowhere else: equal points in A, B and C, with equal scalars.
template Repeated() {
    signal input a;
    signal input b;
    signal input c;
    signal input d;
    signal output o;
    signal t;
    t <== (a + b) * (c + d);
    o <== t * t;
}
component main = Repeated();
