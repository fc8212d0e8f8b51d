//! A stream that checks what it receives, and that ends at its time limit.
//!
//! A stopped server still acknowledges what is sent to it. So neither keepalives nor tcp_user_timeout end the wait, and a
//! long job would leave thousands of threads and sockets behind. Here a wait beyond the limit becomes an error, and its
//! thread ends.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use postgres::Socket;
use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::WireError;
use super::inbound::Inbound;

type Encrypted = <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream;

/// A connection to the server, plain or encrypted.
pub(super) enum Transport {
    Plain(Socket),
    Encrypted(Box<Encrypted>),
}

/// A connection that checks what it receives, and that ends at its time limit.
pub(in crate::connect) struct LimitedStream {
    transport: Transport,
    inbound: Inbound,
    /// Ends a wait: first at the limit of the login, then at the end of the connection.
    alarm: Pin<Box<Sleep>>,
    end: Instant,
}

impl LimitedStream {
    pub(super) fn new(
        transport: Transport,
        inbound: Inbound,
        login_by: Instant,
        end: Instant,
    ) -> Self {
        Self {
            transport,
            inbound,
            alarm: Box::pin(sleep_until(login_by)),
            end,
        }
    }
}

impl TlsStream for LimitedStream {
    fn channel_binding(&self) -> ChannelBinding {
        match &self.transport {
            Transport::Plain(_) => ChannelBinding::none(),
            Transport::Encrypted(stream) => stream.channel_binding(),
        }
    }
}

impl AsyncRead for LimitedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let known = buf.filled().len();
        let this = &mut *self;
        let read = match &mut this.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Transport::Encrypted(stream) => Pin::new(stream).poll_read(cx, buf),
        };
        match read {
            Poll::Ready(Ok(())) => {
                this.inbound.check(&buf.filled()[known..])?;
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

impl AsyncWrite for LimitedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Transport::Encrypted(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Transport::Encrypted(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.transport {
            Transport::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Transport::Encrypted(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
