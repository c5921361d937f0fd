//! `#[timed_test]` instead of `#[test]`: the test is repeated if it failed while the machine was busy.

use proc_macro::{Delimiter, Group, TokenStream, TokenTree};

/// Passes the body of a test to `crate::machine::again_where_busy`.
#[proc_macro_attribute]
pub fn timed_test(_: TokenStream, test: TokenStream) -> TokenStream {
    let mut tokens: Vec<TokenTree> = test.into_iter().collect();
    let Some(TokenTree::Group(body)) = tokens.pop() else { panic!("expected a function with a body") };
    let call: TokenStream = "crate::machine::again_where_busy".parse().expect("a path");
    let closure: TokenStream = "||".parse().expect("the head of a closure");
    let handed = Group::new(Delimiter::Parenthesis, closure.into_iter().chain([TokenTree::Group(body)]).collect());
    let body = call.into_iter().chain([TokenTree::Group(handed)]).collect();
    tokens.push(TokenTree::Group(Group::new(Delimiter::Brace, body)));
    let mut marked: TokenStream = "#[test]".parse().expect("an attribute");
    marked.extend(tokens);
    marked
}
