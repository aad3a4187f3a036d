"""./dev stop: stops every cluster that ./dev run left up in this checkout, and nothing else."""

import sys

import cluster


def main():
    stopped = cluster.stop_all()
    print(f"stop: {stopped} processes stopped")
    return 0


if __name__ == "__main__":
    sys.exit(main())
