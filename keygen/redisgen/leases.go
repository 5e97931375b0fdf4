// SPDX-License-Identifier: Apache-2.0

package redisgen

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/shardid/shardid/internal/nilness"
	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/keygen/workerid"
)

// TextReply is the answer to a script of [Leases]; go-redis' *redis.Cmd implements it.
type TextReply interface {
	// Text returns the answer as a text.
	Text() (string, error)
}

// TextClient runs scripts that answer with texts. It must be safe for concurrent use. The
// clients of go-redis v9 that are [Client]s are TextClients, too.
type TextClient[R TextReply] interface {
	Eval(ctx context.Context, script string, keys []string, args ...any) R
}

// Leases is a ledger of leased worker ids, for [workerid.NewLeased]. Its clock is the Redis
// server's, in microseconds, so units of layouts must be whole microseconds; otherwise the
// error wraps [keygen.ErrLayout]. It is safe for concurrent use and needs no Close.
//
// One hash, with the key "Prefix:namespace", holds all of a namespace, so Redis loses all of it
// or nothing. The package's comment says which losses are detected. A field of the hash that
// somebody deletes by hand is not.
type Leases struct {
	prefix string
	eval   func(ctx context.Context, script, key string, args ...any) (string, error)
}

var _ workerid.Ledger = (*Leases)(nil)

// NewLeases returns a ledger whose keys begin with prefix: "shop:worker", say. It does not call
// Redis. The type of the reply is inferred.
func NewLeases[R TextReply](client TextClient[R], prefix string) (*Leases, error) {
	switch {
	case nilness.Is(client):
		return nil, errNoClient
	case prefix == "":
		return nil, errors.New("redisgen: the prefix of the keys of leases is empty; use the application's name")
	}
	return &Leases{prefix, func(ctx context.Context, script, key string, args ...any) (string, error) {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		return within(ctx, func() (string, error) {
			text, err := client.Eval(ctx, script, []string{key}, args...).Text()
			if cluster, ok := client.(reloader); ok && err != nil {
				cluster.ReloadState(ctx)
			}
			return text, explainedBy(err, leaseCures)
		})
	}}, nil
}

// Create records that no process ever had a lease of the namespace, so that the first lease
// begins at once. Without it, the first lease begins two terms later, as after a loss of data.
// Call it once in the life of an application, where you would call Counter.Seed, and never at
// each start. An existing namespace is unchanged.
func (l *Leases) Create(ctx context.Context, namespace string) error {
	err := l.checkName("namespace", namespace)
	if err == nil {
		_, err = l.run(ctx, createScript, namespace)
	}
	if err != nil {
		return fmt.Errorf("redisgen: create the namespace %q: %w", namespace, err)
	}
	return nil
}

// Take implements workerid.Ledger.
func (l *Leases) Take(ctx context.Context, c workerid.Claim) (workerid.Entry, error) {
	e, err := l.take(ctx, c)
	if err != nil {
		return workerid.Entry{}, fmt.Errorf("redisgen: take a lease: %w", err)
	}
	return e, nil
}

// maxLayoutChanges bounds how often take tries to change a layout: other processes may change
// it at the same time.
const maxLayoutChanges = 10

func (l *Leases) take(ctx context.Context, c workerid.Claim) (e workerid.Entry, err error) {
	if err := l.check(c); err != nil {
		return e, err
	}
	for range maxLayoutChanges {
		answer, err := l.run(ctx, takeScript, c.Namespace, c.Layout.Fingerprint(), c.Layout.Epoch.UnixMicro(), c.Layout.Unit.Microseconds(),
			c.Term.Microseconds(), c.Owner, truncatedHolder(c.Holder), c.Most, luaBool(c.Sticky))
		if err != nil {
			return e, err
		}
		switch answer.kind {
		case "ok":
			err := answer.numbers(&e.Worker, &e.Generation, &e.NotBefore, &e.Ceiling)
			return e, err
		case "full":
			return e, answer.full(c)
		case "early":
			return e, fmt.Errorf("%w: Redis' clock reads a time before the layout's epoch, %v", keygen.ErrLayout, c.Layout.Epoch.UTC())
		case "layout":
			if err := l.change(ctx, c, answer.text); err != nil {
				return e, err
			}
		default:
			return e, answer.unknown()
		}
	}
	return e, fmt.Errorf("%w: other processes change the layout of namespace %q again and again; stop the processes with another layout", keygen.ErrLayout, c.Namespace)
}

// change gives the namespace the claim's layout if the stored layout is the former one and no
// lease is in force.
func (l *Leases) change(ctx context.Context, c workerid.Claim, noted string) error {
	if c.Relation(noted) != workerid.Past {
		return c.Refuse(noted)
	}
	answer, err := l.run(ctx, surveyScript, c.Namespace, noted)
	if err != nil {
		return err
	}
	var held, end int64
	if answer.kind == "other" { // another process has changed it
		return nil
	}
	if err := answer.numbers(&held, &end); err != nil {
		return err
	}
	if held > 0 {
		return c.Hold(noted, held, answer.rest(2), time.UnixMicro(end))
	}
	from, err := c.Begin(time.UnixMicro(end))
	if err != nil {
		return err
	}
	_, err = l.run(ctx, changeScript, c.Namespace, noted, c.Layout.Fingerprint(), c.Layout.Epoch.UnixMicro(), c.Layout.Unit.Microseconds(),
		c.Layout.Tick(from), from.UnixMicro())
	return err
}

// Renew implements workerid.Ledger.
func (l *Leases) Renew(ctx context.Context, c workerid.Claim, e workerid.Entry) (ceiling int64, err error) {
	if err := l.check(c); err != nil {
		return 0, fmt.Errorf("redisgen: renew a lease: %w", err)
	}
	answer, err := l.run(ctx, renewScript, c.Namespace, c.Layout.Fingerprint(), c.Term.Microseconds(), c.Owner, e.Worker, e.Generation)
	switch {
	case err != nil:
	case answer.kind == "ok":
		err = answer.numbers(&ceiling)
	case answer.kind == "lost":
		err = fmt.Errorf("%w: worker id %d %s", keygen.ErrWorkerLost, e.Worker, answer.text)
	default:
		err = answer.unknown()
	}
	if err != nil {
		return 0, fmt.Errorf("redisgen: renew a lease: %w", err)
	}
	return ceiling, nil
}

// Return implements workerid.Ledger.
func (l *Leases) Return(ctx context.Context, c workerid.Claim, e workerid.Entry, end int64) error {
	err := l.check(c)
	if err == nil {
		_, err = l.run(ctx, returnScript, c.Namespace, c.Owner, e.Worker, e.Generation, end)
	}
	if err != nil {
		return fmt.Errorf("redisgen: return a lease: %w", err)
	}
	return nil
}

// The limits equal those of sqlstore, so that one ledger can replace the other.
const (
	maxName   = 64 // characters of a namespace or owner's name
	maxHolder = 128
)

func (l *Leases) check(c workerid.Claim) error {
	for what, name := range map[string]string{"namespace": c.Namespace, "owner": c.Owner} {
		if err := l.checkName(what, name); err != nil {
			return err
		}
	}
	switch {
	case c.Layout.Unit < time.Microsecond || c.Layout.Unit%time.Microsecond != 0:
		return fmt.Errorf("%w: leases need a unit of whole microseconds, not %v", keygen.ErrLayout, c.Layout.Unit)
	case !c.Layout.Epoch.Equal(c.Layout.Epoch.Truncate(time.Microsecond)):
		return fmt.Errorf("%w: leases need an epoch at a whole microsecond, not %v", keygen.ErrLayout, c.Layout.Epoch)
	}
	return nil
}

func (l *Leases) checkName(what, name string) error {
	if l.eval == nil {
		return errNoClient
	}
	if n := utf8.RuneCountInString(name); n == 0 || n > maxName || !utf8.ValidString(name) {
		return fmt.Errorf("the %s has %d characters; it must be UTF-8 text of 1 to %d", what, n, maxName)
	}
	return nil
}

// truncatedHolder returns a holder's name in the length that is stored.
func truncatedHolder(holder string) string {
	holder = strings.ToValidUTF8(holder, "?")
	for utf8.RuneCountInString(holder) > maxHolder {
		_, n := utf8.DecodeRuneInString(holder)
		holder = holder[n:]
	}
	return holder
}

func luaBool(b bool) int {
	if b {
		return 1
	}
	return 0
}

// run runs a script on the key of a namespace.
func (l *Leases) run(ctx context.Context, script, namespace string, args ...any) (answer, error) {
	text, err := l.eval(ctx, leaseLibrary+script, l.prefix+":"+namespace, args...)
	if err != nil {
		return answer{}, err
	}
	kind, rest, _ := strings.Cut(text, " ")
	if kind == "anonymous" {
		return answer{}, &keygen.SetupError{Err: errors.New("the answer to INFO server has no run_id, which is needed to detect a fail-over"), Cure: "connect directly to a Redis or Valkey server, without a proxy"}
	}
	return answer{kind, rest}, nil
}

// answer is a script's answer: its first word, and the rest.
type answer struct{ kind, text string }

// numbers parses the first words of the text as numbers.
func (w answer) numbers(into ...*int64) error {
	fields := strings.SplitN(w.text, " ", len(into)+1)
	if len(fields) < len(into) {
		return w.unknown()
	}
	for i, n := range into {
		var err error
		if *n, err = strconv.ParseInt(fields[i], 10, 64); err != nil {
			return w.unknown()
		}
	}
	return nil
}

// rest returns the text after its first n words.
func (w answer) rest(n int) string {
	fields := strings.SplitN(w.text, " ", n+1)
	if len(fields) <= n {
		return ""
	}
	return fields[n]
}

func (w answer) full(c workerid.Claim) error {
	var held int64
	if err := w.numbers(&held); err != nil {
		return err
	}
	return fmt.Errorf("%w: all %d worker ids of namespace %q are held, by %s; end some of these processes, wait until the leases of dead ones have ended, or change to a layout with more worker bits as package workerid describes",
		keygen.ErrNoWorker, held, c.Namespace, w.rest(1))
}

func (w answer) unknown() error {
	return fmt.Errorf("the script gave the unknown answer %q; check that the key belongs to a ledger", w.kind+" "+w.text)
}
