//! Port numbers that stay ours, also while the server behind them is down.

use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

/// A TCP port on 127.0.0.1 for one server, until it is dropped.
///
/// It lies below the range from which the kernel takes ports for outgoing connections, or one of those could sit on
/// it at the moment when its server is started again. Between test processes it is reserved by an abstract socket,
/// which vanishes with its owner.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _reserved: UnixListener,
}

impl Port {
    /// Reserves a port without a listener.
    pub fn reserve() -> Self {
        loop {
            let number = fastrand::u16(10_000..32_000);
            let name = SocketAddr::from_abstract_name(format!("lease-test-port-{number}"))
                .expect("a name");
            if let Ok(reserved) = UnixListener::bind_addr(&name)
                && TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok()
            {
                return Self {
                    number,
                    _reserved: reserved,
                };
            }
        }
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// The connection string for this port; `user` may carry a password, as in `app:secret`.
    pub fn url(&self, user: &str, database: &str) -> String {
        format!("postgresql://{user}@127.0.0.1:{}/{database}", self.number)
    }
}
