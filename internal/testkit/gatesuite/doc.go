// SPDX-License-Identifier: Apache-2.0

// Package gatesuite runs an application that uses sqlxhook while its table moves to shards and
// back, on any database. It is for tests.
package gatesuite
