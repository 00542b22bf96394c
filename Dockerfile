FROM rust:1-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked --package tenure-cli && cp target/release/tenure /usr/local/bin/tenure

FROM debian:bookworm-slim
RUN useradd --system --uid 10001 tenure
COPY --from=build /usr/local/bin/tenure /usr/local/bin/tenure
USER tenure
STOPSIGNAL SIGTERM
ENTRYPOINT ["tenure"]
CMD ["worker", "--demo"]
