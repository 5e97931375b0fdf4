// SPDX-License-Identifier: Apache-2.0

package gormplugin

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"weak"

	"gorm.io/gorm"

	"github.com/shardid/shardid/keygen"
	"github.com/shardid/shardid/sharding"
	"github.com/shardid/shardid/sharding/shardsql"
)

// Config configures the plugin. Filling keys and routing are independent of each other.
type Config struct {
	// Generators fill the fields that have a keygen tag. If a tag names a generator that is
	// missing here, every create of that model returns an error.
	Generators keygen.Set

	// Models registers structs whose tags the application cannot edit, and tables that are also
	// written as maps without a model. Defaults to none.
	Models []Model

	// Auto makes Generators.Default fill every single primary key of 64 bits that is neither
	// tagged nor registered and that gorm would leave to AUTO_INCREMENT. Make sure that the
	// database no longer numbers these tables. Defaults to false: only tagged and registered
	// fields are filled. With Auto, Generators needs a Default.
	Auto bool

	// NoVerify forbids the one SELECT that filling may send. After an upsert of several rows,
	// the number of affected rows or RETURNING may not show which of the new keys are in the
	// table; the SELECT finds out. With NoVerify the keys of these rows are emptied, and a
	// child that Save has stored beside older ones is stored again by the next Save. Defaults
	// to false.
	NoVerify bool

	// Router routes statements on sharded tables to their shards. Defaults to nil: statements
	// are unchanged. With a Router the *gorm.DB must be opened on MySQL, MariaDB, PostgreSQL or
	// SQLite, with a *sql.DB.
	Router *sharding.Router

	// Replicas are read-only copies of the router's databases, by the router's names of the
	// databases. Reads of sharded tables use them in turn. Reads inside a transaction, reads
	// that lock rows, and reads with sharding.Primary or dbresolver.Write use the database
	// itself, and so do all reads while no copy can be reached. Defaults to none: all reads use
	// the database.
	Replicas map[string][]*sql.DB

	// Observer is told about each statement that is sent with a Router, also those of tables that
	// are not sharded. Defaults to none.
	Observer shardsql.Observer
}

// Plugin is a gorm.Plugin, for the Use of one or several *gorm.DBs. It is safe
// for concurrent use.
type Plugin struct {
	config Config
}

var _ gorm.Plugin = (*Plugin)(nil)

// New returns the plugin for db.Use.
func New(c Config) *Plugin { return &Plugin{config: c} }

// Name returns "shardid".
func (p *Plugin) Name() string { return pluginName }

const pluginName = "shardid"

// Initialize registers the callbacks. Use calls it, and it runs no SQL.
func (p *Plugin) Initialize(db *gorm.DB) error {
	if err := p.initialize(db); err != nil {
		return fmt.Errorf("gormplugin: %w", err)
	}
	return nil
}

// validate returns errors that would otherwise show at the first insert.
func (c *Config) validate() error {
	err := c.Generators.Check()
	if err != nil {
		err = fmt.Errorf("Config.Generators: %w", err)
	}
	if c.Auto && c.Generators.Default == nil {
		err = errors.Join(errors.New("Config.Auto needs Generators.Default, which is nil; set it"), err)
	}
	return err
}

func (p *Plugin) initialize(db *gorm.DB) error {
	if err := p.config.validate(); err != nil {
		return err
	}
	plans, err := p.config.plans(db)
	if err != nil {
		return err
	}
	f := &fill{
		plans:     plans,
		batches:   batches{of: map[weak.Pointer[gorm.Config]][]*filling{}},
		mysql:     db.Dialector.Name() == "mysql",
		returning: slices.Contains(db.Callback().Create().Clauses, "RETURNING"),
		verify:    !p.config.NoVerify,
	}
	if p.config.Router != nil {
		f.routing = &routing{router: p.config.Router}
	}
	if err := f.register(db); err != nil || f.routing == nil {
		return err
	}
	return f.routing.install(db, &p.config)
}
