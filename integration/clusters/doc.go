// SPDX-License-Identifier: Apache-2.0

// Package clusters tests reservations of ids and routed statements on
// three members of Galera and of Group
// Replication with writers on each, and through MySQL Router. It is a module of
// its own, which `make lanes` runs.
package clusters
