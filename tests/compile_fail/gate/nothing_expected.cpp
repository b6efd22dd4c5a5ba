// SPDX-License-Identifier: Apache-2.0
// The gate must refuse this sample: it fails to compile, but says nothing of the message (and POSITIVE has no twin).
// refused: no expected text
int main() { return undeclared_name; }
