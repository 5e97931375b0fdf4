// SPDX-License-Identifier: Apache-2.0

// Package manual writes the commands of shardid as manual pages, which man reads.
package manual
