//! The bytes of a connection, from the first one on.
//!
//! The `postgres` crate asks for TLS and reads the answers by itself, without libpq's rules and without a limit on what
//! a peer may send. It has one gate where a stream can be put in its place: the TLS connector of a "direct" connection.
//! Ours does there what libpq does (ask, then encrypt or not), and gives back a stream that looks at each message's
//! length before it is kept in memory, and at the way in which the server wants to know who is there.
//!
//! The stream also has an end. A server that is stopped still acknowledges what is sent to it, so that neither keepalives
//! nor tcp_user_timeout ever end the wait, and a job of a day with a heartbeat every twenty seconds would leave thousands
//! of threads and sockets behind. Here a wait that has lasted too long becomes an error, and the thread ends.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use postgres::Socket;
use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::handshake::Prepared;
use super::inbound::Inbound;
use super::values::{AuthMethods, CertMode};

/// The first packet of a connection that wants TLS: its length and the code 80877103.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

type Encrypted = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// Whether this try is to be encrypted.
#[derive(Clone)]
pub(super) enum Cover {
    /// It is not.
    Plain,
    /// If the server has TLS, and plain if it says that it has none.
    IfOffered(Handshake),
    /// It is, or there is no connection.
    Required(Handshake),
}

/// What a handshake needs.
#[derive(Clone)]
pub(super) struct Handshake {
    pub(super) prepared: Prepared,
    /// The name or address that the certificate has to bear.
    pub(super) server: String,
    /// Without asking for TLS first.
    pub(super) direct: bool,
}

/// Why a connection came to nothing before the server could say anything about it.
#[derive(Debug)]
pub(super) enum WireError {
    /// What came back is not the protocol of PostgreSQL.
    NotPostgres,
    /// More came back than can be meant seriously.
    TooMuch,
    /// The server has no TLS, and it was required.
    NoTls,
    /// TLS could not be agreed on.
    Handshake(io::Error),
    /// The server wants to know who is there in a way that `require_auth` excludes.
    Method(&'static str),
    /// The server took too long.
    Late,
    /// The server let us in without asking for the certificate that `sslcertmode=require` wants it to check.
    NoCertificateAsked,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPostgres => f.write_str("what answers there is no PostgreSQL server"),
            Self::TooMuch => f.write_str("the answer is too long to be one of a PostgreSQL server"),
            Self::NoTls => f.write_str("the server has no TLS, but sslmode requires it"),
            Self::Handshake(e) => write!(f, "TLS: {e}"),
            Self::Method("none") => {
                f.write_str("require_auth: the server does not ask who is there")
            }
            Self::Method(method) => write!(f, "require_auth: the server asks for {method}"),
            Self::Late => f.write_str("the server did not answer in time"),
            Self::NoCertificateAsked => {
                f.write_str("sslcertmode=require: the server did not ask for a certificate")
            }
        }
    }
}

impl std::error::Error for WireError {}

impl From<WireError> for io::Error {
    fn from(e: WireError) -> Self {
        Self::new(io::ErrorKind::InvalidData, e)
    }
}

/// Makes the stream of one try.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) cover: Cover,
    pub(super) methods: Option<AuthMethods>,
    pub(super) cert_mode: CertMode,
    /// Becomes true when the connection is encrypted.
    pub(super) encrypted: Arc<AtomicBool>,
    /// Until when the login has to be over, and when the connection ends in any case.
    pub(super) login_by: Instant,
    pub(super) end: Instant,
}

impl Connector {
    async fn negotiate(self, socket: Socket) -> io::Result<Wire> {
        let login_by = self.login_by;
        timeout_at(login_by, self.agree(socket))
            .await
            .unwrap_or_else(|_| Err(WireError::Late.into()))
    }

    async fn agree(self, mut socket: Socket) -> io::Result<Wire> {
        let (handshake, required) = match &self.cover {
            Cover::Plain => return self.plain(socket),
            Cover::IfOffered(handshake) => (handshake, false),
            Cover::Required(handshake) => (handshake, true),
        };
        if !handshake.direct {
            socket.write_all(&SSL_REQUEST).await?;
            let mut answer = [0];
            socket.read_exact(&mut answer).await?;
            match answer[0] {
                b'S' => {}
                b'N' if required => return Err(WireError::NoTls.into()),
                b'N' => return self.plain(socket),
                // An error message, which nobody has signed: libpq does not read it either (CVE-2024-10977).
                b'E' => {
                    return Err(io::Error::other(
                        "the server answered the request for TLS with an error",
                    ));
                }
                _ => return Err(WireError::NotPostgres.into()),
            }
        }
        let mut maker = MakeRustlsConnect::new(handshake.prepared.config.clone());
        let connect = MakeTlsConnect::<Socket>::make_tls_connect(&mut maker, &handshake.server)
            .unwrap_or_else(|never| match never {});
        let stream = connect
            .connect(socket)
            .await
            .map_err(WireError::Handshake)?;
        self.encrypted.store(true, Ordering::Release);
        if self.cert_mode == CertMode::Require
            && !handshake.prepared.certificate_shown.load(Ordering::Acquire)
        {
            return Err(WireError::NoCertificateAsked.into());
        }
        Ok(self.wire(Stream::Encrypted(Box::new(stream))))
    }

    fn plain(&self, socket: Socket) -> io::Result<Wire> {
        if self.cert_mode == CertMode::Require {
            return Err(WireError::NoCertificateAsked.into());
        }
        Ok(self.wire(Stream::Plain(socket)))
    }

    fn wire(&self, stream: Stream) -> Wire {
        Wire {
            stream,
            inbound: Inbound::new(self.methods),
            alarm: Box::pin(sleep_until(self.login_by)),
            end: self.end,
        }
    }
}

impl MakeTlsConnect<Socket> for Connector {
    type Stream = Wire;
    type TlsConnect = Self;
    type Error = io::Error;

    fn make_tls_connect(&mut self, _domain: &str) -> Result<Self, io::Error> {
        Ok(self.clone())
    }
}

impl TlsConnect<Socket> for Connector {
    type Stream = Wire;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Wire>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(self.negotiate(socket))
    }
}

enum Stream {
    Plain(Socket),
    Encrypted(Box<Encrypted>),
}

/// A connection whose incoming messages are looked at.
pub(super) struct Wire {
    stream: Stream,
    inbound: Inbound,
    /// Goes off when a wait has lasted too long: for the login at first, then for anything.
    alarm: Pin<Box<Sleep>>,
    end: Instant,
}

impl TlsStream for Wire {
    fn channel_binding(&self) -> ChannelBinding {
        match &self.stream {
            Stream::Plain(_) => ChannelBinding::none(),
            Stream::Encrypted(stream) => stream.channel_binding(),
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let known = buf.filled().len();
        let this = &mut *self;
        let read = match &mut this.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Encrypted(stream) => Pin::new(stream).poll_read(cx, buf),
        };
        match read {
            Poll::Ready(Ok(())) => {
                this.inbound.look_at(&buf.filled()[known..])?;
                if this.inbound.is_logged_in() && this.alarm.deadline() != this.end {
                    this.alarm.as_mut().reset(this.end);
                }
                read
            }
            Poll::Pending if this.alarm.as_mut().poll(cx).is_ready() => {
                Poll::Ready(Err(WireError::Late.into()))
            }
            Poll::Pending | Poll::Ready(Err(_)) => read,
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Stream::Encrypted(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Encrypted(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Encrypted(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
