# docker build -t ibid .                   one static binary with PDFium, and the English encoder
# docker build -t ibid --target scans .    the same on Debian, with tesseract to read scans
#
#   docker run --rm -v ibid:/data ibid keys make me
#   docker run -p 8080:8080 -v ibid:/data -v ~/notes:/notes:ro ibid serve /notes

FROM golang:1.26-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends npm python3-pip
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN go generate ./ingest/pdf
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -tags=pdfium -o /out/ibid ./cmd/ibid
RUN /out/ibid setup --yes --data /out/parts english
RUN mkdir -m 700 /out/data && mkdir -m 1777 /out/tmp

FROM debian:bookworm-slim AS scans
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates tesseract-ocr && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/ibid /out/parts/english.ibidmodel /
COPY --from=build /src/LICENSE /src/NOTICE /src/ingest/pdf/pdfium/pdfium.LICENSE* /licenses/
COPY --from=build --chown=65532:65532 /out/data /data
ENV IBID_DATA=/data IBID_ADDR=0.0.0.0:8080
USER 65532:65532
VOLUME /data
EXPOSE 8080
HEALTHCHECK --start-period=10s CMD ["/ibid", "health"]
ENTRYPOINT ["/ibid"]
CMD ["serve"]

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /out/tmp /tmp
COPY --from=build /out/ibid /out/parts/english.ibidmodel /
COPY --from=build /src/LICENSE /src/NOTICE /src/ingest/pdf/pdfium/pdfium.LICENSE* /licenses/
COPY --from=build --chown=65532:65532 /out/data /data
ENV IBID_DATA=/data IBID_ADDR=0.0.0.0:8080
USER 65532:65532
VOLUME /data
EXPOSE 8080
HEALTHCHECK --start-period=10s CMD ["/ibid", "health"]
ENTRYPOINT ["/ibid"]
CMD ["serve"]
