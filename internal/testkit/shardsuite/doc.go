// SPDX-License-Identifier: Apache-2.0

// Package shardsuite is what gormplugin promises about sharded tables, on any two
// databases: a test for each kind of statement and each way in which it is given keys,
// and one that sharded tables answer as whole ones do, or refuse. It is for tests here and in
// integration.
package shardsuite
