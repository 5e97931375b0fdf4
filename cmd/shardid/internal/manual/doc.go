// SPDX-License-Identifier: Apache-2.0

// Package manual writes manual pages of shardid's commands, for man.
package manual
