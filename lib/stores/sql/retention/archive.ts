/** Where rows are written before they are deleted. */
export interface Archive {
  /**
   * Writes an object whole or not at all, in place of an earlier one of the same name.
   *
   * @param name such as `calls/2026/11/calls-2026-11-03.jsonl.gz`.
   * @param confirm is called when all chunks are taken, before the object appears. If it rejects, none appears.
   */
  write(name: string, chunks: AsyncIterable<Uint8Array>, confirm: () => Promise<void>): Promise<void>
}
