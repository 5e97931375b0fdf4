// SPDX-License-Identifier: Apache-2.0

// Package dialect contains the differences between the databases that shardid uses and inspects:
// one small file per database.
//
// Every identifier is sent to the database either quoted or not at all. Detect and Identify find
// the server's product, its cluster, and a proxy in front of it; Appliers finds its replication
// sources. The package opens no connections and starts no goroutines.
package dialect
