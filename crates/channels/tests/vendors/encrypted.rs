//! Mail servers that take nothing unencrypted, and access tokens in place of passwords: a real dovecot, and aiosmtpd.

use std::{
    net::{IpAddr, SocketAddr},
    path::Path,
    sync::Arc,
};

use axum::{Json, Router, http::Uri};
use muster_channels::{Failure, MailServer, World};
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
    support::{Hand, Names, Told, open_world, part, serve, text, world as closed_world, world_with},
};

/// An address of this machine that no other process uses, for ports that are the same everywhere.
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

/// A world that believes the certificate in a folder.
fn believing(folder: &Path, address: &str) -> World {
    let certificate = CertificateDer::from_pem_file(folder.join("cert.pem")).unwrap();
    world_with(&["127.0.0.0/8"], names(address), None, &[certificate])
}

#[tokio::test]
async fn smtp_is_encrypted_by_starttls() {
    let folder = TempDir::new().unwrap();
    certify(folder.path());
    let mut smtp = Smtp::start("127.0.0.1", 0, "starttls", folder.path()).await;
    let (world, port) = (believing(folder.path(), "127.0.0.1"), smtp.port);
    let said = text("Hello");
    let by = |server, world: &World| channel(None, Some(server), world);
    let mailbox = by(at("mail.test", port, "secret"), &world);
    mailbox.probe().await.unwrap();
    mailbox.send(&part(&said, "ada@a.test")).await.unwrap();
    let sent = smtp.mail().await;
    assert_eq!(
        (&sent["by"], &sent["to"], &sent["tls"]),
        (&json!("agent"), &json!(["ada@a.test"]), &json!("TLSv1.3"))
    );

    let wrong =
        by(at("mail.test", port, "canary"), &world).send(&part(&said, "ada@a.test")).await.unwrap_err();
    assert!(matches!(wrong, Failure::Credentials(_)), "{wrong}");
    // A certificate of another name, or one that nobody vouches for: nobody signs in.
    let doubting = closed_world(&["127.0.0.0/8"], names("127.0.0.1"), None);
    for mailbox in
        [by(at("other.test", port, "secret"), &world), by(at("mail.test", port, "secret"), &doubting)]
    {
        let failure = mailbox.send(&part(&said, "ada@a.test")).await.unwrap_err();
        assert!(matches!(failure, Failure::NotSent(_)), "{failure}");
    }
}

/// Whoever gives out tokens: `right` is the agent's.
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
    let world = believing(dovecot.folder(), "127.0.0.1");
    let imap = |secret| Some(at("mail.test", dovecot.address.port(), secret));
    let post = |secret| Some(at("mail.test", smtp.port, secret));
    channel(imap("Bearer right"), post("Bearer right"), &world).probe().await.unwrap();
    // Passwords still count.
    channel(imap("secret"), post("secret"), &world).probe().await.unwrap();
    for mailbox in
        [channel(imap("Bearer canary"), None, &world), channel(None, post("Bearer canary"), &world)]
    {
        let failure = mailbox.probe().await.unwrap_err();
        assert!(matches!(failure, Failure::Credentials(_)), "{failure}");
        assert!(!format!("{failure:?}").contains("canary"), "{failure:?}");
    }
}

#[tokio::test]
async fn a_token_is_shown_only_to_who_takes_tokens() {
    let (port, _) = smtp("250 ok", "250 ok").await;
    let mailbox = channel(None, Some(server(port, "Bearer right")), &open_world(None));
    let failure = mailbox.probe().await.unwrap_err();
    assert!(matches!(&failure, Failure::NotSent(cause) if cause.as_str().contains("XOAUTH2")), "{failure}");
}

/// Encrypts what another server does not.
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

/// Only root may listen on the ports on which everything is encrypted from the start.
#[tokio::test]
async fn root_a_mail_is_answered_over_ports_that_are_encrypted_from_the_start() {
    let (dovecot, apart) = (Dovecot::start().await, apart());
    front(SocketAddr::new(apart.parse().unwrap(), 993), dovecot.folder(), dovecot.address).await;
    let mut smtp = Smtp::start(&apart, 465, "tls", dovecot.folder()).await;
    let world = believing(dovecot.folder(), &apart);
    let (imap, post) = (at("mail.test", 993, "secret"), at("mail.test", 465, "secret"));
    let mailbox = channel(Some(imap.clone()), Some(post.clone()), &world);
    mailbox.probe().await.unwrap();
    let (sink, mut told) = Hand::new(9);
    during(&mailbox, None, &sink, async {
        // Until it is opened, the mail would be found anyway.
        while !matches!(told.recv().await, Some(Told::Admitted(..))) {}
        dovecot.deliver("m1", &mail("m1", "one"));
        assert_eq!(texts(&next(&mut told).await.0).1, "one");
    })
    .await;
    mailbox.send(&part(&text("two"), "ada@a.test")).await.unwrap();
    let sent = smtp.mail().await;
    assert_eq!((&sent["sender"], &sent["tls"]), (&json!("agent@b.test"), &json!("TLSv1.3")));

    let doubting = closed_world(&["127.0.0.0/8"], names(&apart), None);
    for mailbox in [channel(Some(imap), None, &doubting), channel(None, Some(post), &doubting)] {
        assert!(matches!(mailbox.probe().await, Err(Failure::NotSent(_))));
    }
}
