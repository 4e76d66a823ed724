//! Lock waits between PostgreSQL connections.

use sea_orm::{ConnectionTrait, DatabaseConnection, TransactionTrait};
use secrecy::ExposeSecret;

use super::{TestApp, connect, until};

impl TestApp {
    /// A connection of its own: the test's is the only one of its pool, and is needed to look.
    pub async fn connection(&self) -> DatabaseConnection {
        connect(self.core.config.database.url.expose_secret()).await
    }

    /// Something waits for another transaction.
    pub async fn waits_for_a_lock(&self) {
        let waiting = "SELECT COUNT(*) FROM pg_stat_activity \
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        until("it waits", async || self.one::<i64>(waiting, vec![]).await > 0).await;
    }

    /// Does something that needs what another transaction holds, by the statement `first`. While it waits, it does not hold what the
    /// statement `then` locks: anyone who needs both takes them in this order, so that no one ends in a deadlock.
    pub async fn while_held<T>(&self, first: &str, then: &str, act: impl Future<Output = T>) -> T {
        let holder = self.connection().await.begin().await.unwrap();
        holder.execute_unprepared(first).await.unwrap();
        let lock = async {
            self.waits_for_a_lock().await;
            holder.execute_unprepared(then).await.expect("who waits for the first does not hold the second");
            holder.rollback().await.unwrap();
        };
        tokio::join!(act, lock).0
    }

    /// Runs `act`, which needs a row that another transaction changes with the statement `first`. While `act` waits,
    /// the other transaction continues with the statement `then`, and commits.
    pub async fn while_changed<T>(&self, first: &str, then: Option<&str>, act: impl Future<Output = T>) -> T {
        let other = self.connection().await.begin().await.unwrap();
        assert_ne!(other.execute_unprepared(first).await.unwrap().rows_affected(), 0, "{first}");
        let commit = async {
            self.waits_for_a_lock().await;
            for then in then {
                assert_ne!(other.execute_unprepared(then).await.unwrap().rows_affected(), 0, "{then}");
            }
            other.commit().await.unwrap();
        };
        tokio::join!(act, commit).0
    }
}
