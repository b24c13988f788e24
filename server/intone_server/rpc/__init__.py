"""The gRPC surface: servicers, protobuf to domain and back, status codes, health."""
