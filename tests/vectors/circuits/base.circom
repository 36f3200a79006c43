pragma circom 2.0.0;

template Base() {
    signal input x;
    signal input a;
    signal input b;
    signal output out;
    signal m;
    signal n;
    signal k;
    m <== a * b;
    n <== m * x;
    k <== n * n;
    out <== k * a + b;
}

component main {public [x]} = Base();
