//! The same settings through `psql` and through the library.

use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::time::Duration;

use pglease::clock::BootTime;
use pglease::connect::{Access, OpenError, Settings, open};
use pglease::fault::Fault;
use postgres::Client;

use crate::PATIENCE;
use crate::support::{programs, rows};

/// Asks about a connection: user, database, address, encryption and application name.
const QUESTION: &str = "select current_user || '@' || current_database() || ' ' \
    || coalesce(host(inet_server_addr()) || ':' || inet_server_port(), 'socket ' || current_setting('port')) \
    || ' ssl=' || (select coalesce(version, 'off') from pg_stat_ssl where pid = pg_backend_pid()) \
    || case when current_setting('application_name') in ('psql', 'lease') then '' \
       else ' as ' || current_setting('application_name') end";

/// Connection settings: a string, and variables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    pub(crate) string: Option<String>,
    pub(crate) variables: HashMap<String, String>,
}

impl Given {
    pub(crate) fn new(string: Option<&str>, variables: &[(&str, &str)]) -> Self {
        Self {
            string: string.map(str::to_owned),
            variables: variables
                .iter()
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                .collect(),
        }
    }

    /// The settings as the library reads them.
    pub(crate) fn resolve(&self) -> Result<Settings, String> {
        Settings::resolve_in(self.string.as_deref(), &|name| {
            self.variables.get(name).cloned()
        })
        .map_err(|e| e.to_string())
    }

    /// What the server reports about a connection by the library, or why there is none.
    pub(crate) fn by_library(&self) -> Result<String, String> {
        let settings = self.resolve()?;
        let mut client = connect(&settings, Access::Read).map_err(|e| e.message)?;
        Ok(ask(&mut client))
    }

    /// The same by `psql`.
    pub(crate) fn by_psql(&self) -> Result<String, String> {
        let mut command = Command::new(programs::psql());
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
            .envs(&self.variables)
            .stdin(Stdio::null())
            .args(["-X", "-A", "-t", "-w", "-c", QUESTION]);
        if let Some(string) = &self.string {
            command.args(["-d", string]);
        }
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim().to_owned();
        if output.status.success() {
            Ok(text(output.stdout))
        } else {
            Err(text(output.stderr))
        }
    }

    /// Checks that both connect in the same way, or that neither does. Returns the library's result.
    pub(crate) fn compare(&self) -> Result<String, String> {
        let (psql, library) = (self.by_psql(), self.by_library());
        match (&psql, &library) {
            (Ok(a), Ok(b)) if a == b => {}
            (Err(_), Err(_)) => {}
            _ => panic!("{self:?}\n  psql:    {psql:?}\n  library: {library:?}"),
        }
        library
    }
}

/// Opens a connection with a generous time limit.
pub(crate) fn connect(settings: &Settings, access: Access) -> Result<Client, OpenError> {
    let by = BootTime::now() + PATIENCE;
    open(settings, "lease", access, (by, by), None).map(|made| made.client)
}

/// Opens a connection with a time limit.
pub(crate) fn connect_within(
    given: &Given,
    access: Access,
    limit: Duration,
) -> Result<String, (Fault, String)> {
    let settings = given.resolve().map_err(|e| (Fault::Refused, e))?;
    let by = BootTime::now() + limit;
    let mut client = open(&settings, "lease", access, (by, by), None)
        .map_err(|e| (e.fault, e.message))?
        .client;
    Ok(ask(&mut client))
}

/// What the server reports about a connection.
pub(crate) fn ask(client: &mut Client) -> String {
    let said = rows(client, QUESTION).unwrap().trim().to_owned();
    assert_ne!(said, "", "the server answers");
    said
}
