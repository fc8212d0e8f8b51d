//! Another program that shares the table, with statements of its own: it releases by DELETE, and a new row's fence is whatever
//! the column's default says.

mod race;
mod side_by_side;
mod witness;

use postgres::types::Type;
use postgres::{Client, NoTls};

use crate::page::recipe;
use crate::support::serial;

const CLAIM: &str = "
    INSERT INTO lease (key, holder, expires_at) VALUES ($1, $2, clock_timestamp() + interval '5 minutes')
    ON CONFLICT (key) DO UPDATE
       SET holder = EXCLUDED.holder, fence = lease.fence + 1,
           acquired_at = clock_timestamp(), expires_at = EXCLUDED.expires_at
     WHERE lease.expires_at <= clock_timestamp()
    RETURNING fence";

const RENEW: &str = "
    UPDATE lease SET expires_at = clock_timestamp() + interval '5 minutes'
     WHERE key = $1 AND holder = $2 AND fence = $3 AND expires_at > clock_timestamp()
    RETURNING fence";

const RELEASE: &str = "
    DELETE FROM lease WHERE key = $1 AND holder = $2 AND fence = $3
    RETURNING fence";

/// A connection of that program. Each statement stands on its own, so a pooler may send each over another connection.
struct Neighbour(Client);

/// What it holds.
struct Term {
    key: String,
    holder: String,
    fence: i64,
    /// The process of the server that answered.
    backend: i32,
}

impl Neighbour {
    fn connect(url: &str) -> Self {
        Self(Client::connect(url, NoTls).expect("a connection"))
    }

    /// `None` if another holder has it.
    fn claim(&mut self, key: &str) -> Option<Term> {
        let holder = format!("theirs-{}", serial());
        // The statement is given with its types: a named prepared one would not survive the pooler.
        let rows = self.0.query_typed(
            &witnessed(CLAIM),
            &[(&key, Type::TEXT), (&holder, Type::TEXT)],
        );
        let rows = rows.expect("an answer to the claim");
        let (fence, backend) = rows.first().map(|row| (row.get(0), row.get(1)))?;
        Some(Term {
            key: key.to_owned(),
            holder,
            fence,
            backend,
        })
    }

    fn renew(&mut self, term: &Term) {
        self.one(RENEW, term);
    }

    /// Returns the process of the server that answered.
    fn release(&mut self, term: &Term) -> i32 {
        self.one(RELEASE, term)
    }

    #[track_caller]
    fn one(&mut self, statement: &str, term: &Term) -> i32 {
        let rows = self.0.query_typed(
            &witnessed(statement),
            &[
                (&term.key, Type::TEXT),
                (&term.holder, Type::TEXT),
                (&term.fence, Type::INT8),
            ],
        );
        let rows = rows.expect("an answer");
        assert_eq!(
            rows.len(),
            1,
            "{} {} is no longer the holder of its own term",
            term.holder,
            term.fence
        );
        rows[0].get(1)
    }
}

/// The statement as it is, and which process of the server answers it.
fn witnessed(statement: &str) -> String {
    format!("{statement}, pg_backend_pid()")
}

/// The table as that program has made it.
fn its_own_table(url: &str) {
    let mut client = Client::connect(url, NoTls).expect("a connection");
    client
        .batch_execute(&recipe("shared-table"))
        .expect("a table");
}

/// The same after its owner has followed the advice.
fn its_table_with_the_safe_default(url: &str) {
    its_own_table(url);
    let mut client = Client::connect(url, NoTls).expect("a connection");
    client
        .batch_execute(&recipe("shared-table-default"))
        .expect("alters");
}
