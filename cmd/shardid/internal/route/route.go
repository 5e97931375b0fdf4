// SPDX-License-Identifier: Apache-2.0

package route

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/shardid/shardid/cmd/shardid/internal/command"
	"github.com/shardid/shardid/cmd/shardid/internal/database"
	"github.com/shardid/shardid/cmd/shardid/internal/input"
	"github.com/shardid/shardid/cmd/shardid/internal/layoutfile"
	"github.com/shardid/shardid/internal/dialect"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

const statementFile = "name a file with statements, one per line, or MySQL's general log"

// dialects are the values of --dialect.
var dialects = []string{"mysql", "mariadb", "sqlite", "postgres"}

// routeFlags are the flags of route.
type routeFlags struct {
	config, dialect, log, source string
	asJSON                       bool
}

// New returns the command route.
func New() *cobra.Command {
	f := routeFlags{dialect: "mysql"}
	cmd := &cobra.Command{
		Use:   "route --config FILE (STATEMENT [ARGUMENT]... | --log FILE)",
		Short: "Print which shards a statement, or each statement of a log, goes to",
		Long: `Route plans statements as package sharding/shardsql would, and sends none of them.
Without --source no database is opened. It prints where a statement goes, what each shard gets, and how
the answers are combined, or why it is refused and what to do.

Arguments are the parameters of the statement: a number, NULL, a time as
2025-02-03T10:00:00Z, or otherwise a text.

With --log it reads statements from a file, one per line, or from MySQL's or
MariaDB's general log, and prints how many go to one shard, to several, home, or are
refused, and why, the most frequent first, each with a statement without its values.
Prepared statements of a log are planned when they are executed, as the log has their
values then. A statement of a file with parameters, $1 or ?, stays undecided if
their values decide where it goes.

Without --source it knows only the columns of the configuration, and a statement that
needs others, or their types or unique keys, such as an order over several shards or a
write of a broadcast table, stays undecided. With --source it reads the columns from one
database, whose tables have their own names or those of shards: a DSN, or the name of
one of "databases". It only queries the catalog there, and takes the dialect of the
database. A home table that is there in no database but home is not found, and is named.

The exit code is 1 if a statement is refused or undecided.

` + layoutfile.Help,
		Example: "  shardid route --config shards.json 'SELECT * FROM orders WHERE user_id = ?' 42\n  shardid route --config shards.json --source east --log general.log",
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.source != "" && cmd.Flags().Changed("dialect") {
				return input.Errorf("--dialect: the dialect is that of --source; give one of the two")
			}
			return f.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), args)
		},
	}
	layoutfile.Flag(cmd, &f.config)
	cmd.Flags().StringVar(&f.dialect, "dialect", f.dialect, strings.Join(dialects, ", "))
	cmd.Flags().StringVar(&f.source, "source", "", "the database whose columns are read, or its name in the file of --config (default none)")
	cmd.Flags().StringVar(&f.log, "log", "", "file of statements; - for stdin")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object")
	return cmd
}

func (f routeFlags) run(ctx context.Context, stdin io.Reader, w io.Writer, args []string) (err error) {
	given := len(args) > 0 && strings.TrimSpace(args[0]) != ""
	switch {
	case given && f.log != "":
		return input.Errorf("give either a statement or a file of statements with --log, not both")
	case !given && f.log == "":
		return input.Errorf("which statement? give one as an argument, or a file of statements with --log")
	}
	if !slices.Contains(dialects, strings.ToLower(f.dialect)) {
		return input.Errorf("--dialect %q is unknown; give one of %s", dialect.RedactDSN(f.dialect), strings.Join(dialects, ", "))
	}
	layout, err := layoutfile.Read(f.config)
	if err != nil {
		return err
	}
	r, err := layout.Router(layout.Unopened())
	if err != nil {
		return err
	}
	plan := Offline(r, f.dialect)
	if f.source != "" {
		db, err := f.open(ctx, layout)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		if plan, err = By(ctx, r, db); err != nil {
			return fmt.Errorf("--source: %w", err)
		}
		f.dialect = plan.dialect
	}
	if f.log != "" {
		report, err := plan.Log(f.log, stdin)
		if err != nil {
			return err
		}
		if err := f.printReport(w, report); err != nil {
			return err
		}
		return f.verdict(report)
	}
	values := make([]any, 0, len(args)-1)
	for _, arg := range args[1:] {
		values = append(values, routeValue(arg))
	}
	e, err := plan.statement(args[0], values...)
	if err != nil {
		return err
	}
	if e.Parameters != len(values) {
		return input.Errorf("the number of parameters of the statement in the dialect %s (--dialect) is %d, and that of the arguments after it %d; give one argument for each parameter", f.dialect, e.Parameters, len(values))
	}
	if err := f.print(w, args[0], e, cmp.Or(layout.Home, "home"), plan.absent()); err != nil {
		return err
	}
	switch e.Kind { //nolint:exhaustive // the others are executed
	case shardsql.Refused:
		return command.WithCode(errors.New("the statement is refused"), command.ExitUnclean)
	case shardsql.Undecided:
		return command.WithCode(errors.New("the statement is undecided"+f.remedy()), command.ExitUnclean)
	}
	return nil
}

// open opens the database of --source for reading.
func (f routeFlags) open(ctx context.Context, layout layoutfile.File) (*sql.DB, error) {
	dsn := f.source
	if entry, named := layout.Databases[f.source]; named {
		var err error
		if dsn, err = entry.DSN(layout.Dir); err != nil {
			return nil, fmt.Errorf("--config: database %q: %w", f.source, err)
		}
	}
	db, err := database.Open(ctx, dsn)
	if err != nil {
		return nil, fmt.Errorf("--source: %w", err)
	}
	return db, nil
}

// remedy says how an undecided statement is decided.
func (f routeFlags) remedy() string {
	if f.source == "" {
		return "; name a database that has the columns with --source"
	}
	return "; name another database with --source, which has its tables"
}

// verdict is the error for a log with statements that are refused or undecided.
func (f routeFlags) verdict(report Report) error {
	refused, undecided := report.Kinds[shardsql.Refused], report.Kinds[shardsql.Undecided]
	remedy := f.remedy()
	if len(report.Undecided) == 0 {
		remedy = "; give a log with the values of parameters, such as MySQL's general log, or plan each statement with its arguments"
	}
	var text string
	switch {
	case refused == 0 && undecided == 0:
		return nil
	case undecided == 0:
		text = fmt.Sprintf("%d of %d statements are refused", refused, report.Statements)
	case refused == 0:
		text = fmt.Sprintf("%d of %d statements are undecided%s", undecided, report.Statements, remedy)
	default:
		text = fmt.Sprintf("%d of %d statements are refused, and %d undecided%s", refused, report.Statements, undecided, remedy)
	}
	return command.WithCode(errors.New(text), command.ExitUnclean)
}

// routeValue parses an argument of a statement.
func routeValue(text string) any {
	if strings.EqualFold(text, "NULL") {
		return nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at
	}
	return text
}

// Result is the plan of a statement, as JSON.
type Result struct {
	Kind    shardsql.Kind `json:"kind"`
	Lookups []routeShard  `json:"lookups,omitempty"`
	Shards  []routeShard  `json:"shards,omitempty"`
	Merge   string        `json:"merge,omitempty"`
	Note    string        `json:"note,omitempty"` // about the texts
	Reason  string        `json:"reason,omitempty"`
	Absent  []string      `json:"absent,omitempty"` // tables that the database of --source does not have
}

type routeShard struct {
	Target string `json:"target,omitempty"`
	Text   string `json:"text"`
	Args   []any  `json:"args,omitempty"`
}

// subquery is what a text of shardsql.Plan shows for a subquery that is executed first.
const subquery = "(0 + 0)"

// print shows the home database under its name in the configuration.
func (f routeFlags) print(w io.Writer, statement string, e shardsql.Explanation, home string, absent []string) error {
	result := Result{Kind: e.Kind, Merge: e.Merge, Note: unknown(statement, e), Absent: absent}
	if e.Kind == shardsql.Refused {
		result.Reason = e.Err.Error()
	}
	for _, s := range e.Lookups {
		s.Target.DB = cmp.Or(s.Target.DB, home)
		result.Lookups = append(result.Lookups, routeShard{s.Target.String(), s.Text, s.Args})
	}
	for _, s := range e.Shards {
		shard := routeShard{Text: s.Text, Args: s.Args}
		if e.Kind != shardsql.Home {
			shard.Target = s.Target.String()
		}
		if strings.Contains(s.Text, subquery) && !strings.Contains(statement, subquery) {
			result.Note = subquery + " stands for the result of a subquery, which is executed first; the result may lead to fewer shards"
		}
		result.Shards = append(result.Shards, shard)
	}
	if f.asJSON {
		return json.NewEncoder(w).Encode(result)
	}
	_, err := io.WriteString(w, result.text())
	return err
}

func (r Result) text() string {
	var b strings.Builder
	fmt.Fprintln(&b, routeWords[r.Kind])
	asks := "  is the row in "
	if r.Kind == shardsql.Lookup {
		asks = "  "
	}
	for _, s := range r.Lookups {
		fmt.Fprintln(&b, asks+s.line())
	}
	for _, s := range r.Shards {
		if r.Kind != shardsql.Home {
			fmt.Fprintln(&b, "  "+s.line())
		}
	}
	if r.Note != "" {
		fmt.Fprintln(&b, "  "+r.Note)
	}
	if r.Merge != "" {
		fmt.Fprintln(&b, "  "+r.Merge)
	}
	if r.Reason != "" {
		fmt.Fprintln(&b, "  "+r.Reason)
	}
	if len(r.Absent) > 0 {
		fmt.Fprintln(&b, "  "+absentText(r.Absent))
	}
	return b.String()
}

func (s routeShard) line() string {
	if len(s.Args) == 0 {
		return s.Target + ": " + s.Text
	}
	return fmt.Sprintf("%s: %s with %v", s.Target, s.Text, s.Args)
}

var routeWords = map[shardsql.Kind]string{
	shardsql.Home:    "home: unchanged, to the home database",
	shardsql.One:     "one shard",
	shardsql.Scatter: "several shards",
	shardsql.Several: "several shards, each with its part of a write",
	shardsql.Copies:  "every database",
	shardsql.Lookup:  "after a search, which tells the shards",
	shardsql.Refused: "refused",

	shardsql.Undecided: "undecided: needs the types and the unique keys of the columns, which the router reads from the databases",
}

// Report counts the plans of the statements of a log.
type Report struct {
	Statements int                   `json:"statements"`
	Kinds      map[shardsql.Kind]int `json:"kinds"`
	Refused    []routeReason         `json:"refused,omitempty"`
	Undecided  []routeReason         `json:"undecided,omitempty"` // why they may be refused
	Unbound    []routeReason         `json:"unbound,omitempty"`   // undecided, too: the log does not have the values of their parameters
	Unknown    []routeReason         `json:"unknown,omitempty"`   // they go home, and shardid does not know what they are
	Absent     []string              `json:"absent,omitempty"`    // tables that the database of the columns does not have
}

type routeReason struct {
	Times   int    `json:"times"`
	Reason  string `json:"reason"`
	Example string `json:"example"`
}

// Log plans the statements of a file, or of stdin for "-".
func (p Planner) Log(name string, stdin io.Reader) (report Report, err error) {
	source := stdin
	if name != "-" {
		file, err := os.Open(name) //nolint:gosec // the user's own file
		if err != nil {
			return report, input.Unread("--log", name, err, statementFile)
		}
		defer func() { _ = file.Close() }() // the file is only read
		source = file
	}
	report.Kinds = map[shardsql.Kind]int{}
	refused, undecided, unbound, unread := reasons{}, reasons{}, reasons{}, reasons{}
	for statement, err := range loggedStatements(source) {
		switch {
		case errors.Is(err, errLongLine), errors.Is(err, errUTF16):
			return report, input.Errorf("--log %s cannot be read: %w; %s", name, err, statementFile)
		case err != nil:
			return report, input.Unread("--log", name, err, statementFile)
		}
		e, err := p.statement(statement)
		if err != nil {
			return report, err
		}
		report.Statements++
		if !p.sampled(statement, &e) {
			report.Kinds[shardsql.Undecided]++
			unbound.add("undecided: needs the values of its parameters, which the log does not have", e.Fingerprint)
			continue
		}
		report.Kinds[e.Kind]++
		switch e.Kind { //nolint:exhaustive // there is nothing to say of the others
		case shardsql.Refused:
			refused.add(routeWhy(e.Err), e.Fingerprint)
		case shardsql.Undecided:
			undecided.add(routeWhy(e.Err), e.Fingerprint)
		case shardsql.Home:
			if what := unknown(statement, e); what != "" {
				unread.add(what, e.Fingerprint)
			}
		}
	}
	report.Refused, report.Undecided, report.Unbound, report.Unknown, report.Absent = refused.sorted(), undecided.sorted(), unbound.sorted(), unread.sorted(), p.absent()
	return report, nil
}

// reasons count statements by what is to be said of them.
type reasons map[string]*routeReason

func (r reasons) add(why, example string) {
	if r[why] == nil {
		r[why] = &routeReason{Reason: why, Example: example}
	}
	r[why].Times++
}

// sorted are the reasons, the most frequent first.
func (r reasons) sorted() (all []routeReason) {
	for _, reason := range r {
		all = append(all, *reason)
	}
	slices.SortFunc(all, func(a, b routeReason) int {
		return cmp.Or(b.Times-a.Times, strings.Compare(a.Reason, b.Reason))
	})
	return all
}

// routeWhy is the reason of a refusal, without the values of one statement.
func routeWhy(err error) string {
	var refusal *sharding.RouteError
	if !errors.As(err, &refusal) {
		return err.Error()
	}
	return refusal.Reason()
}

func (f routeFlags) printReport(w io.Writer, report Report) error {
	if f.asJSON {
		return json.NewEncoder(w).Encode(report)
	}
	_, err := io.WriteString(w, report.Text())
	return err
}

// Text formats the report.
func (report Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d statements\n", report.Statements)
	for _, kind := range []shardsql.Kind{shardsql.One, shardsql.Lookup, shardsql.Scatter, shardsql.Several, shardsql.Home, shardsql.Copies, shardsql.Undecided, shardsql.Refused} {
		if n := report.Kinds[kind]; n > 0 {
			words := routeWords[kind]
			if kind == shardsql.Undecided && len(report.Unbound) > 0 {
				words = "undecided"
			}
			fmt.Fprintf(&b, "%7d  %5.1f %%  %s\n", n, 100*float64(n)/float64(report.Statements), words)
		}
	}
	for _, list := range []struct {
		what string
		all  []routeReason
	}{{"", report.Refused}, {"undecided; if the columns do not allow it: ", report.Undecided}, {"", report.Unbound}, {"", report.Unknown}} {
		for _, reason := range list.all {
			fmt.Fprintf(&b, "\n%7d  %s%s\n         %s\n", reason.Times, list.what, reason.Reason, Shortened(reason.Example))
		}
	}
	if len(report.Absent) > 0 {
		fmt.Fprintln(&b, "\n"+absentText(report.Absent))
	}
	return b.String()
}

// Shortened is a statement that fits on one line of a terminal.
func Shortened(statement string) string {
	const most = 200
	line := strings.Join(strings.Fields(statement), " ")
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + " …"
	}
	return line
}
