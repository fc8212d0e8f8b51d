//! A network of its own for a program, with a switch that loses every packet.

use std::fs;
use std::process::{Command, Stdio};

use super::{Server, keeper, serial};

/// A network namespace, joined to the tests' own network by a pair of virtual interfaces. Dropped, it is gone.
///
/// A program in it reaches a server of the tests at [`host`](Self::host), if that was made
/// [`for_networks`](super::builder::Builder::for_networks).
#[derive(Debug)]
pub struct Network {
    name: String,
    outer: Side,
    inner: Side,
    hole: String,
}

/// A hardware address that no interface has: what is sent there is lost.
const NOBODY: &str = "02:00:00:00:00:00";

#[derive(Debug)]
struct Side {
    interface: String,
    address: String,
    hardware: String,
}

impl Network {
    /// Makes one where the machine allows it. A test that gets `None` says so: `skip("network namespaces")`.
    pub fn new() -> Option<Self> {
        let name = format!("lease-{}-{}", std::process::id(), serial());
        // The keeper removes what is written here, should this process be killed.
        let note = keeper::root().join(format!("{name}.netns"));
        fs::write(&note, &name).ok()?;
        ip(&["netns", "add", &name])?;
        let id = format!("{}x{}", std::process::id() % 1_000_000, serial());
        // Eight addresses of a range that is private and seldom used; others of our kind choose at random too.
        let net = fastrand::u32(0..1 << 13) * 8;
        let address = |last: u32| format!("10.213.{}.{}", net >> 8, (net & 0xff) + last);
        let mut network = Self {
            outer: Side {
                interface: format!("lo{id}"),
                address: address(1),
                hardware: String::new(),
            },
            inner: Side {
                interface: format!("li{id}"),
                address: address(2),
                hardware: String::new(),
            },
            hole: address(3),
            name,
        };
        network.connect()?;
        Some(network)
    }

    fn connect(&mut self) -> Option<()> {
        let (outer, inner) = (&self.outer.interface, &self.inner.interface);
        ip(&[
            "link", "add", outer, "type", "veth", "peer", "name", inner, "netns", &self.name,
        ])?;
        ip(&[
            "address",
            "add",
            &format!("{}/29", self.outer.address),
            "dev",
            outer,
        ])?;
        ip(&["link", "set", outer, "up"])?;
        self.inside(&[
            "address",
            "add",
            &format!("{}/29", self.inner.address),
            "dev",
            inner,
        ])?;
        self.inside(&["link", "set", "lo", "up"])?;
        self.inside(&["link", "set", inner, "up"])?;
        self.outer.hardware = hardware(&ip(&["-o", "link", "show", outer])?)?;
        self.inner.hardware = hardware(&self.inside(&["-o", "link", "show", inner])?)?;
        self.join();
        self.inside(&[
            "neigh",
            "replace",
            &self.hole,
            "lladdr",
            NOBODY,
            "nud",
            "permanent",
            "dev",
            inner,
        ])?;
        Some(())
    }

    /// Words to put in front of a command, so that it runs in the namespace: for [`super::Lease::wrapped`].
    /// The process stays the same one.
    pub fn wrapper(&self) -> [String; 4] {
        ["ip", "netns", "exec", &self.name].map(str::to_owned)
    }

    /// The address of the tests' own network as seen from the namespace.
    pub fn host(&self) -> &str {
        &self.outer.address
    }

    /// The superuser of a server, as seen from the namespace.
    pub fn url(&self, server: &Server) -> String {
        let (host, port) = (self.host(), server.port());
        format!("postgresql://postgres@{host}:{port}/postgres")
    }

    /// An address at which every packet is lost silently, whatever happens to the others. It sorts before
    /// [`host`](Self::host) when a name has both: it has more bits in common with the namespace's own address.
    pub fn black_hole(&self) -> &str {
        &self.hole
    }

    /// The address of the namespace.
    pub fn address(&self) -> &str {
        &self.inner.address
    }

    /// From now on every packet is lost silently, in both directions.
    pub fn drop_packets(&self) {
        self.neighbours(NOBODY, NOBODY);
    }

    /// Packets arrive again.
    pub fn join(&self) {
        self.neighbours(&self.inner.hardware, &self.outer.hardware);
    }

    fn neighbours(&self, of_outer: &str, of_inner: &str) {
        let set = |peer: &Side, hardware: &str, own: &Side| {
            [
                "neigh",
                "replace",
                &peer.address,
                "lladdr",
                hardware,
                "nud",
                "permanent",
                "dev",
                &own.interface,
            ]
            .map(str::to_owned)
        };
        let outer = ip(&set(&self.inner, of_outer, &self.outer)
            .each_ref()
            .map(String::as_str));
        let inner = self.inside(
            &set(&self.outer, of_inner, &self.inner)
                .each_ref()
                .map(String::as_str),
        );
        assert!(
            outer.is_some() && inner.is_some(),
            "a network that takes neighbours"
        );
    }

    fn inside(&self, args: &[&str]) -> Option<String> {
        ip(&[&["-n", &self.name], args].concat())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // Connections in the outer network keep nothing of it alive; its interface goes with the namespace, unless a
        // process still runs there.
        let _ = ip(&["link", "delete", &self.outer.interface]);
        let _ = ip(&["netns", "delete", &self.name]);
        let _ = fs::remove_file(keeper::root().join(format!("{}.netns", self.name)));
    }
}

/// Runs ip(8); `None` if it is missing or not allowed.
fn ip(args: &[&str]) -> Option<String> {
    let output = Command::new("ip")
        .args(args)
        .stdin(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn hardware(link: &str) -> Option<String> {
    Some(
        link.split_once("link/ether ")?
            .1
            .split_whitespace()
            .next()?
            .to_owned(),
    )
}
