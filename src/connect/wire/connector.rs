//! Requests TLS as libpq does, and makes the stream of one connection attempt.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use postgres::Socket;
use postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::connect::settings::{AuthMethods, CertMode};
use crate::connect::tls::Prepared;

use super::error::WireError;
use super::inbound::Inbound;
use super::stream::{LimitedStream, Transport};

/// The first packet of a connection that requests TLS: its length and the code 80877103.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// Whether a connection attempt is encrypted.
#[derive(Clone)]
pub(in crate::connect) enum Encryption {
    /// Not encrypted.
    Plain,
    /// Encrypted if the server supports TLS.
    IfOffered(Handshake),
    /// Encrypted, or the attempt fails.
    Required(Handshake),
}

/// The parameters of a TLS handshake.
#[derive(Clone)]
pub(in crate::connect) struct Handshake {
    pub(in crate::connect) prepared: Prepared,
    /// The name or address that the certificate must be for.
    pub(in crate::connect) server: String,
    /// Whether TLS starts without a request.
    pub(in crate::connect) direct: bool,
}

/// Makes the stream of one connection attempt.
#[derive(Clone)]
pub(in crate::connect) struct Connector {
    pub(in crate::connect) encryption: Encryption,
    pub(in crate::connect) methods: Option<AuthMethods>,
    pub(in crate::connect) cert_mode: CertMode,
    /// Becomes true when the connection is encrypted.
    pub(in crate::connect) encrypted: Arc<AtomicBool>,
    /// When the login must be complete.
    pub(in crate::connect) login_by: Instant,
    /// When the connection ends in any case.
    pub(in crate::connect) end: Instant,
}

impl Connector {
    async fn negotiate(self, socket: Socket) -> io::Result<LimitedStream> {
        let login_by = self.login_by;
        timeout_at(login_by, self.agree(socket))
            .await
            .unwrap_or_else(|_| Err(WireError::Late.into()))
    }

    async fn agree(self, mut socket: Socket) -> io::Result<LimitedStream> {
        let (handshake, required) = match &self.encryption {
            Encryption::Plain => return self.plain(socket),
            Encryption::IfOffered(handshake) => (handshake, false),
            Encryption::Required(handshake) => (handshake, true),
        };
        if !handshake.direct {
            socket.write_all(&SSL_REQUEST).await?;
            let mut answer = [0];
            socket.read_exact(&mut answer).await?;
            match answer[0] {
                b'S' => {}
                b'N' if required => return Err(WireError::NoTls.into()),
                b'N' => return self.plain(socket),
                // The message of this error is not authenticated, so it is not shown. libpq does the same
                // (CVE-2024-10977).
                b'E' => {
                    return Err(io::Error::other(
                        "the server answered the TLS request with an error",
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
            && !handshake.prepared.certificate_sent.load(Ordering::Acquire)
        {
            return Err(WireError::CertificateNotRequested.into());
        }
        Ok(self.limit(Transport::Encrypted(Box::new(stream))))
    }

    fn plain(&self, socket: Socket) -> io::Result<LimitedStream> {
        if self.cert_mode == CertMode::Require {
            return Err(WireError::CertificateNotRequested.into());
        }
        Ok(self.limit(Transport::Plain(socket)))
    }

    fn limit(&self, transport: Transport) -> LimitedStream {
        LimitedStream::new(
            transport,
            Inbound::new(self.methods),
            self.login_by,
            self.end,
        )
    }
}

impl MakeTlsConnect<Socket> for Connector {
    type Stream = LimitedStream;
    type TlsConnect = Self;
    type Error = io::Error;

    fn make_tls_connect(&mut self, _domain: &str) -> Result<Self, io::Error> {
        Ok(self.clone())
    }
}

impl TlsConnect<Socket> for Connector {
    type Stream = LimitedStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<LimitedStream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(self.negotiate(socket))
    }
}
