// SPDX-License-Identifier: Apache-2.0

// Package literal writes the result of a subquery into the text of its query: numbers and NULL as literals; texts, bytes
// and times as arguments.
//
// A written result compares and computes as the subquery would have. A value that no literal and no argument stands for
// is not written.
package literal
