"""Who may speak, and who speaks next: admission, the queue, generations and replicas."""
