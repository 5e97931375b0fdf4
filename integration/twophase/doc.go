// SPDX-License-Identifier: Apache-2.0

// Package twophase tests transactions over several databases on real servers, while programs
// and servers are killed.
package twophase
