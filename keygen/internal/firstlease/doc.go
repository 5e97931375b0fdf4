// SPDX-License-Identifier: Apache-2.0

// Package firstlease bounds the wait of a new generator for its worker id: a database whose machine is gone may not answer at all,
// and a program that starts without a deadline would wait for ever.
package firstlease
