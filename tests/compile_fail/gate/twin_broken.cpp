// SPDX-License-Identifier: Apache-2.0
// The gate must refuse this sample: the twin that should compile has the same fault.
// refused: the positive twin does not compile
// expect: rows do not match
template <int N> struct check { static_assert(N == 1, "rows do not match"); };
#ifdef POSITIVE
check<3> twin;
#else
check<2> wrong;
#endif
int main() {}
