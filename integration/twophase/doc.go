// SPDX-License-Identifier: Apache-2.0

// Package twophase tries transactions over several databases on real servers, with programs
// and servers that are killed.
package twophase
