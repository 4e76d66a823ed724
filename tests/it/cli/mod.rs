//! The command line, with the real program.

mod audit;
mod backup;
mod installation;
mod keys;
mod operator;
mod people;
mod policies;
mod restored;
mod seed;
mod tokens;
mod users;
