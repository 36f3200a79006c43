pragma circom 2.0.0;
// Every signal is public: no private wire, so section 8 of the key is empty.
template AllPublic() {
    signal input a;
    signal input b;
    signal output o;
    o <== a * b;
}
component main {public [a, b]} = AllPublic();
