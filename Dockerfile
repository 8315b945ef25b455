# The image of every command: `docker run expunge COMMAND …`. Node is process 1, so SIGTERM reaches it; the image has a shell for
# --token-command and nothing else that expunge needs. Redis is elsewhere: REDIS_URL names it.

FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN --mount=type=cache,target=/root/.npm \
    npm ci --ignore-scripts --omit=dev && mv node_modules needed && npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY src src
RUN npm run build && chmod +x dist/bin.js

FROM node:24-bookworm-slim
# The folder where commands run: lists, expunge.config.json and the state live there. Any --user may write to it.
# Nothing installs packages here.
RUN mkdir --mode=1777 /data && ln -s /app/dist/bin.js /usr/local/bin/expunge && \
    rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack
COPY package.json LICENSE /app/
COPY --from=build /app/needed /app/node_modules
COPY --from=build /app/dist /app/dist

ENV NODE_ENV=production NODE_OPTIONS=--max-semi-space-size=4 EXPUNGE_HTTP=0.0.0.0:9464
EXPOSE 9464
USER 1000:1000
WORKDIR /data
ENTRYPOINT ["node", "/app/dist/bin.js"]
CMD ["worker"]
# Of a worker; switch it off for what doesn't listen. It never asks for Redis: a restart would mend none.
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s \
    CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.EXPUNGE_HTTP.split(':').pop() + '/healthz').then(({ ok }) => process.exit(ok ? 0 : 1))"]

ARG VERSION=0.1.0
ARG REVISION
ARG CREATED
ARG SOURCE
ENV EXPUNGE_REVISION=$REVISION
LABEL org.opencontainers.image.title="expunge" \
      org.opencontainers.image.description="Deletes annotations and views in bulk through an API that only deletes one at a time, and says what happened to every id." \
      org.opencontainers.image.authors="the expunge authors" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.base.name="docker.io/library/node:24-bookworm-slim" \
      org.opencontainers.image.source="$SOURCE" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.created="$CREATED"
