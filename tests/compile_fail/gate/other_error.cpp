// SPDX-License-Identifier: Apache-2.0
// The gate must refuse this sample: the first error is a typing mistake, the expected one comes second.
// refused: the first error does not say it
// expect: rows do not match
#ifdef POSITIVE
int main() {}
#else
int main() { return undeclared_name; }
template <int N> struct check { static_assert(N == 1, "rows do not match"); };
check<2> second;
#endif
