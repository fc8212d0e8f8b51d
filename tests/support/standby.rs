//! Streaming standbys, and what becomes of them when the primary is gone.

use super::server::Server;
use super::{programs, serial, until};

impl Server {
    /// Starts a hot standby of this server and waits until it streams.
    ///
    /// With `sync`, COMMIT on this server waits from then on until the standby has flushed it, and hangs while the
    /// standby is away.
    pub fn standby(&self, sync: bool) -> Self {
        let (standby, name) = self.copy();
        standby.start();
        let streams = |state: &str| self.streams(&name, state);
        until("the standby streams", || streams("state = 'streaming'"));
        if sync {
            self.set("synchronous_standby_names", &name);
            until("the standby is synchronous", || {
                streams("sync_state = 'sync'")
            });
        }
        standby
    }

    /// Starts a standby of this server that takes no connections, and waits until it streams.
    pub fn closed_standby(&self) -> Self {
        let (standby, name) = self.copy();
        standby.configure(&["hot_standby = off".to_owned()]);
        standby.start_without_waiting();
        until("the standby streams", || {
            self.streams(&name, "state = 'streaming'")
        });
        standby
    }

    /// A copy of this server that will follow it, and the name that it will have here.
    fn copy(&self) -> (Self, String) {
        let name = format!("standby_{}", serial());
        let standby = Self::lay_out();
        programs::run(
            programs::command(programs::bindir().join("pg_basebackup"))
                .args([
                    "--no-sync",
                    "--checkpoint=fast",
                    "--write-recovery-conf",
                    "--pgdata",
                ])
                .arg(standby.data())
                .arg("--dbname")
                .arg(format!(
                    "host={} port={} user=postgres application_name={name}",
                    self.dir.display(),
                    self.port()
                )),
        );
        // Looking for its primary again takes 5 s by default.
        standby.configure(&["wal_retrieve_retry_interval = 200ms".to_owned()]);
        (standby, name)
    }

    fn streams(&self, name: &str, state: &str) -> bool {
        let sql = format!(
            "SELECT 1 FROM pg_stat_replication WHERE application_name = '{name}' AND {state}"
        );
        self.psql(&sql) == "1"
    }

    /// Whether this server is a standby.
    pub fn is_standby(&self) -> bool {
        self.psql("SELECT pg_is_in_recovery()") == "t"
    }

    /// Makes a standby a primary, and waits until it is one.
    pub fn promote(&self) {
        self.psql("SELECT pg_promote(wait => false)");
        until("the standby has become a primary", || !self.is_standby());
    }

    /// Waits until a standby has applied all that `primary` has flushed.
    pub fn catch_up_with(&self, primary: &Self) {
        let flushed = primary.psql("SELECT pg_current_wal_flush_lsn()");
        let sql = format!("SELECT pg_last_wal_replay_lsn() >= '{flushed}'");
        until("the standby has caught up", || self.psql(&sql) == "t");
    }

    /// Makes a standby ignore what its primary sends from now on: it is left behind, as one with a slow link.
    pub fn fall_behind(&self) {
        self.set("primary_conninfo", "");
        until("the standby has no primary", || {
            self.psql("SELECT count(*) FROM pg_stat_wal_receiver") == "0"
        });
    }
}
