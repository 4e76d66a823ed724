//! Tests of encrypted mail servers and access tokens with a real dovecot and aiosmtpd.

use std::{
    net::{IpAddr, SocketAddr},
    path::Path,
    sync::Arc,
};

use axum::{Json, Router, http::Uri};
use muster_channels::{Failure, MailServer, Network};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

use crate::{
    aiosmtpd::Smtp,
    dovecot::{Dovecot, certify},
    email::{channel, during, mail, next, server, smtp, texts},
    support::{
        Names, SinkCall, TestSink, network as closed_network, network_with, open_network, part, serve, text,
    },
};

/// A loopback address for only this process, for tests with fixed ports.
fn apart() -> String {
    let [.., high, low] = std::process::id().to_be_bytes();
    format!("127.71.{high}.{low}")
}

fn at(host: &str, port: u16, secret: &str) -> MailServer {
    MailServer { host: host.to_owned(), tls: true, ..server(port, secret) }
}

fn names(address: &str) -> Names {
    let address: IpAddr = address.parse().unwrap();
    Names(vec![("mail.test", vec![address]), ("other.test", vec![address])])
}

/// A network that trusts the certificate in a folder.
fn believing(folder: &Path, address: &str) -> Network {
    let certificate = CertificateDer::from_pem_file(folder.join("cert.pem")).unwrap();
    network_with(&["127.0.0.0/8"], names(address), None, &[certificate])
}

#[tokio::test]
async fn smtp_is_encrypted_by_starttls() {
    let folder = TempDir::new().unwrap();
    certify(folder.path());
    let mut smtp = Smtp::start("127.0.0.1", 0, "starttls", folder.path()).await;
    let (network, port) = (believing(folder.path(), "127.0.0.1"), smtp.port);
    let said = text("Hello");
    let by = |server, network: &Network| channel(None, Some(server), network);
    let mailbox = by(at("mail.test", port, "secret"), &network);
    mailbox.probe().await.unwrap();
    mailbox.send(&part(&said, "ada@a.test")).await.unwrap();
    let sent = smtp.mail().await;
    assert_eq!(
        (&sent["by"], &sent["to"], &sent["tls"]),
        (&json!("agent"), &json!(["ada@a.test"]), &json!("TLSv1.3"))
    );

    let wrong =
        by(at("mail.test", port, "canary"), &network).send(&part(&said, "ada@a.test")).await.unwrap_err();
    assert!(matches!(wrong, Failure::Credentials(_)), "{wrong}");
    // With another name's certificate or an untrusted one, no login is attempted.
    let doubting = closed_network(&["127.0.0.0/8"], names("127.0.0.1"), None);
    for (mailbox, reason) in [
        (by(at("other.test", port, "secret"), &network), "is for mail.test, and not for other.test"),
        (by(at("mail.test", port, "secret"), &doubting), "signed only by itself"),
    ] {
        let failure = mailbox.send(&part(&said, "ada@a.test")).await.unwrap_err();
        assert!(matches!(failure, Failure::NotSent(_)), "{failure}");
        assert!(failure.to_string().contains(reason), "{failure}");
    }
}

/// A token server. `right` is the agent's token.
async fn tokens() -> SocketAddr {
    let answer = async |uri: Uri| match uri.path() {
        "/right" => Json(json!({"active": true, "user": "agent"})),
        _ => Json(json!({"active": false})),
    };
    serve(Router::new().fallback(answer)).await
}

#[tokio::test]
async fn access_tokens_open_mailboxes() {
    let dovecot = Dovecot::start_with(Some(tokens().await)).await;
    let smtp = Smtp::start("127.0.0.1", 0, "starttls", dovecot.folder()).await;
    let network = believing(dovecot.folder(), "127.0.0.1");
    let imap = |secret| Some(at("mail.test", dovecot.address.port(), secret));
    let post = |secret| Some(at("mail.test", smtp.port, secret));
    channel(imap("Bearer right"), post("Bearer right"), &network).probe().await.unwrap();
    // Passwords are still accepted.
    channel(imap("secret"), post("secret"), &network).probe().await.unwrap();
    for mailbox in
        [channel(imap("Bearer canary"), None, &network), channel(None, post("Bearer canary"), &network)]
    {
        let failure = mailbox.probe().await.unwrap_err();
        assert!(matches!(failure, Failure::Credentials(_)), "{failure}");
        assert!(!format!("{failure:?}").contains("canary"), "{failure:?}");
    }
}

#[tokio::test]
async fn tokens_are_sent_only_to_servers_with_xoauth2() {
    let (port, _) = smtp("250 ok", "250 ok").await;
    let mailbox = channel(None, Some(server(port, "Bearer right")), &open_network(None));
    let failure = mailbox.probe().await.unwrap_err();
    assert!(matches!(&failure, Failure::NotSent(cause) if cause.as_str().contains("XOAUTH2")), "{failure}");
}

/// A TLS proxy in front of a plain server.
async fn front(address: SocketAddr, folder: &Path, behind: SocketAddr) {
    let certificate = CertificateDer::from_pem_file(folder.join("cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.join("key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    let (tls, listener) = (TlsAcceptor::from(Arc::new(config)), TcpListener::bind(address).await.unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let tls = tls.clone();
            tokio::spawn(async move {
                let Ok(mut outer) = tls.accept(stream).await else { return };
                let mut inner = TcpStream::connect(behind).await.unwrap();
                let _ = copy_bidirectional(&mut outer, &mut inner).await;
            });
        }
    });
}

/// Only root can listen on the ports of implicit TLS.
#[tokio::test]
async fn root_mails_travel_over_implicit_tls() {
    let (dovecot, apart) = (Dovecot::start().await, apart());
    front(SocketAddr::new(apart.parse().unwrap(), 993), dovecot.folder(), dovecot.address).await;
    let mut smtp = Smtp::start(&apart, 465, "tls", dovecot.folder()).await;
    let network = believing(dovecot.folder(), &apart);
    let (imap, post) = (at("mail.test", 993, "secret"), at("mail.test", 465, "secret"));
    let mailbox = channel(Some(imap.clone()), Some(post.clone()), &network);
    mailbox.probe().await.unwrap();
    let (sink, mut calls) = TestSink::new(9);
    during(&mailbox, None, &sink, async {
        // A mail delivered before the mailbox is open would be found anyway.
        while !matches!(calls.recv().await, Some(SinkCall::Admitted(..))) {}
        dovecot.deliver("m1", &mail("m1", "one"));
        assert_eq!(texts(&next(&mut calls).await.0).1, "one");
    })
    .await;
    mailbox.send(&part(&text("two"), "ada@a.test")).await.unwrap();
    let sent = smtp.mail().await;
    assert_eq!((&sent["sender"], &sent["tls"]), (&json!("agent@b.test"), &json!("TLSv1.3")));

    let doubting = closed_network(&["127.0.0.0/8"], names(&apart), None);
    for mailbox in [channel(Some(imap), None, &doubting), channel(None, Some(post), &doubting)] {
        assert!(matches!(mailbox.probe().await, Err(Failure::NotSent(_))));
    }
}
