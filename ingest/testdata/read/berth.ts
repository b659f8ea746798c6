/* Berths of the harbour. */
export interface Berth { id: string; length: number }

/**
 * Finds a free berth.
 * @returns the first that is long enough
 */
export async function find(
  berths: Berth[], length: number,
): Promise<Berth | undefined> {
  if (length > 12) {
    return undefined;
  }
  return berths.find((b) => b.length >= length);
}

export class Harbour {
  private berths: Berth[] = [];

  /** Adds a berth. */
  public add(b: Berth): void {
    this.berths.push(b); // class Fake {}
  }
}

const label = (b: Berth) => `function none() {
  ${b.id}`;
