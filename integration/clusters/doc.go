// SPDX-License-Identifier: Apache-2.0

// Package clusters tests numbers that are reserved, and statements that are routed, on
// what stands behind the word "MySQL" in production: three members of Galera and of Group
// Replication with writers on each, and MySQL's own proxy before them. It is a module of
// its own, which `make lanes` runs.
package clusters
