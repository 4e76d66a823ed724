//! The documents people use to manage and recover their own account.

/// With the token `t` of a link.
pub const CONFIRM: &str = "mutation($t: SecretString!) { confirmEmail(token: $t) }";
/// For the address `e`.
pub const REQUEST_RESET: &str = "mutation($e: String!) { requestPasswordReset(email: $e) }";
/// With the token `t` of a link, to the password `p`.
pub const RESET: &str =
    "mutation($t: SecretString!, $p: SecretString!) { resetPassword(token: $t, newPassword: $p) }";
/// From the current password `c` to the new one `n`.
pub const CHANGE_PASSWORD: &str =
    "mutation($c: SecretString!, $n: SecretString!) { changePassword(currentPassword: $c, newPassword: $n) }";
/// To the address `e`, with the password `p` where there is one.
pub const CHANGE_EMAIL: &str =
    "mutation($e: String!, $p: SecretString) { changeEmail(email: $e, password: $p) }";
