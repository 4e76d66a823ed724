//! Members, sessions, tokens, invitations, and the organization's own rules.

use serde_json::json;

use super::{Filler, Population, text};

impl Filler<'_> {
    pub(super) async fn people(&self, all: &mut Population, i: usize) {
        let role = ["ADMIN", "OPERATOR", "VIEWER"][i % 3];
        let person = self.app.person_of(self.org, role, i % 4 != 3).await;
        all.members.extend(person.user);
        let sessions = "SELECT max(id) FROM sessions WHERE user_id = $1";
        let user = person.user.unwrap_or_default();
        all.sessions.push(self.app.one::<Option<i64>>(sessions, vec![user.into()]).await.unwrap());
        let n = self.fresh();
        let row = vec![
            ("name", text(format!("token {n}"))),
            ("token_hash", format!("no token hashes to this: {n}").into_bytes().into()),
            ("hint", text(format!("{n:04}"))),
            ("permissions", json!(["agent.view", "server.view"][..=i % 2]).into()),
            ("created_by", person.user.filter(|_| i.is_multiple_of(2)).into()),
            ("created_at", self.at(i)),
            ("expires_at", self.maybe_at(i + 86_400_000, i % 2 == 1)),
        ];
        all.service_tokens.push(self.insert("service_tokens", row).await);
        let row = vec![
            ("email", text(format!("invited-{n}@example.com"))),
            ("role", text(role)),
            ("token_hash", format!("no link hashes to this: {n}").into_bytes().into()),
            ("invited_by", person.user.filter(|_| i.is_multiple_of(2)).into()),
            ("created_at", self.at(i)),
            ("sent_at", self.maybe_at(i, i % 2 == 1)),
            ("expires_at", self.at(i + 604_800_000)),
        ];
        all.invitations.push(self.insert("invitations", row).await);
        if i % 4 == 3 {
            let row = vec![
                ("subject", text("MEMBER")),
                ("user_id", person.user.into()),
                ("state", text("SCHEDULED")),
                ("state_at", self.at(i)),
                ("requested_by", self.author.user.into()),
                ("requested_at", self.at(i)),
                // In 400 days: no test waits so long by accident.
                ("due_at", self.maybe_at(34_560_000_000, true)),
            ];
            all.erasures.push(self.insert("erasures", row).await);
        }
        // For a person, outside organizations.
        let sql = "INSERT INTO user_identities (user_id, provider, subject, email, created_at, last_used_at) \
                   VALUES ($1, 'elsewhere', $2, $3, $4, $4)";
        let (subject, email) = (format!("someone {n}"), format!("someone-{n}@example.org"));
        let values = vec![self.author.user.into(), subject.into(), email.into(), self.at(i)];
        self.app.execute(sql, values).await;
    }

    pub(super) async fn policy(&self, all: &mut Population, i: usize) {
        let given = format!("p, VIEWER, {}, contact.view, allow\n", self.org);
        let given = (i % 3 != 2).then_some(given);
        let row = vec![
            ("version", text(muster::domain::policies::version_of(given.as_deref()))),
            ("text", given.into()),
            ("author_kind", text(["USER", "OPERATOR", "OPERATOR"][i % 3])),
            ("author_id", i.is_multiple_of(3).then(|| all.members[i]).into()),
            ("author_name", i.is_multiple_of(3).then(|| format!("author {i}")).into()),
            ("reason", text(format!("reason {i}"))),
            ("reverts_to", (i % 4 == 3).then(|| all.policy_versions[0]).into()),
            ("at", self.at(i)),
        ];
        all.policy_versions.push(self.insert("policy_versions", row).await);
    }
}
