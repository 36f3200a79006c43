pragma circom 2.0.0;
// Only a linear constraint: every point of B is infinity.
template Sum() {
    signal input a;
    signal input b;
    signal output o;
    o <== a + b;
}
component main = Sum();
