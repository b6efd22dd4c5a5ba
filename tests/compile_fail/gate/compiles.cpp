// SPDX-License-Identifier: Apache-2.0
// The gate must refuse this sample: nothing in it is rejected, though a comment and a warning hold the text.
// refused: the wrong program compiles
// expect: rows do not match
#ifdef POSITIVE
int main() {}
#else
#warning rows do not match
int main() {}
#endif
