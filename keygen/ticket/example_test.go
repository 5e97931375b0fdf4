// SPDX-License-Identifier: Apache-2.0

package ticket_test

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/shardid/shardid/keygen/ticket"
)

// Two servers, in memory here, count odd and even ids. In an application each is a Table on
// its own server.
func ExampleNew() {
	ctx := context.Background()
	g, err := ticket.New(ctx, ticket.Config{Servers: []ticket.Server{server(1, 2), server(2, 2)}, Step: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = g.Close() }()
	odd, even := 0, 0
	for range 10 {
		id, err := g.Next(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		if id%2 == 0 {
			even++
		} else {
			odd++
		}
	}
	fmt.Println(odd, "odd and", even, "even ids")
	// Output: 5 odd and 5 even ids
}

// A table of tickets is on one MySQL or MariaDB server, which has its own pool.
func ExampleNewTable() {
	var pool *sql.DB // sql.Open("mysql", "tickets@tcp(db2)/tickets")
	_, err := ticket.NewTable(ticket.TableConfig{
		DB:        pool,
		Numbering: ticket.Numbering{Offset: 2, Increment: 2},
	})
	fmt.Println(err)
	// Output: ticket: TableConfig.DB is nil; open the ticket server's database first
}

// One server at 7 becomes two: it keeps the odd ids, and the new one begins with the even
// ones above the boundary.
func ExamplePlanExpansion() {
	live := []ticket.Live{{Numbering: ticket.Numbering{Offset: 1, Increment: 1}, Last: 7}}
	plan, err := ticket.PlanExpansion(live, 2, 7)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("boundary:", plan.From)
	for _, s := range plan.Added() {
		fmt.Printf("new server: %v from %d on\n", s.Numbering, s.AutoIncrement)
	}
	fmt.Println(plan.Armed(live))

	live[0] = ticket.Live{Numbering: ticket.Numbering{Offset: 1, Increment: 2}, Last: 9}
	fmt.Println(plan.Armed(live))
	// Output:
	// boundary: 14
	// new server: 2, 4, 6, … from 14 on
	// ticket: the expansion may not begin: server 1 of 1: the server counts by 1 from 1, not by 2 from 1 as expected; correct its settings, at once and in its configuration file, or correct the expected Numbering
	// <nil>
}
