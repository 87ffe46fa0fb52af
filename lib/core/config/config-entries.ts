/** Entries of a config that are read together. */
const PAGE = 500

/** Some entries, in the order of their ids. */
export interface EntryPage {
  /** The last id. */
  readonly last: string
  /** The entries as JSON in UTF-8. A thread can pass its memory on to another one. */
  readonly json: Uint8Array<ArrayBuffer>
}

/** Accounts or keys of a config: all of them, or page by page. */
export type EntryList<Entry extends { readonly id: string }> = readonly Entry[] | ConfigEntries<Entry>

/**
 * The accounts or keys of a config in the order of their ids. They are kept as pages of JSON, which take a fifth of the memory of
 * their objects: there may be hundreds of thousands of them, and few are needed at a time.
 */
export class ConfigEntries<Entry extends { readonly id: string }> {
  readonly pages: readonly EntryPage[]
  /** The page that was read last: ids are often looked up in their order. */
  #lastRead: { readonly at: number; readonly byId: ReadonlyMap<string, Entry> } | undefined

  constructor(pages: readonly EntryPage[]) {
    this.pages = pages
  }

  /** Of entries with the same id, the last one counts. */
  static of<Entry extends { readonly id: string }>(list: EntryList<Entry>): ConfigEntries<Entry> {
    if (list instanceof ConfigEntries) return list
    const entries = list
      .toSorted((one, other) => (one.id < other.id ? -1 : Number(one.id > other.id)))
      .filter(({ id }, i, sorted) => id !== sorted[i + 1]?.id)
    const pages: EntryPage[] = []
    const memory = new PageMemory()
    for (let at = 0; at < entries.length; at += PAGE) {
      const some = entries.slice(at, at + PAGE)
      pages.push({ last: some.at(-1)?.id as string, json: memory.encode(JSON.stringify(some)) })
    }
    return new ConfigEntries(pages)
  }

  /** Yields all entries, some at a time. */
  *read(): Generator<readonly Entry[]> {
    for (const page of this.pages) yield entriesOf<Entry>(page)
  }

  find(id: string): Entry | undefined {
    const at = this.#pageOf(id)
    const page = this.pages[at]
    if (!page) return undefined
    if (this.#lastRead?.at !== at) this.#lastRead = { at, byId: byIdOf(entriesOf<Entry>(page)) }
    return this.#lastRead.byId.get(id)
  }

  /** Returns at most `limit` entries whose ids are behind this one. */
  behind(id: string, limit: number): readonly Entry[] {
    const found: Entry[] = []
    for (let at = this.#pageOf(id); at < this.pages.length && found.length < limit; at++) {
      const page = this.pages[at] as EntryPage
      // Batches are as long as pages: an id is often the last one of its page, which has nothing behind it.
      if (page.last === id) continue
      for (const entry of entriesOf<Entry>(page)) if (entry.id > id) found.push(entry)
    }
    return found.slice(0, limit)
  }

  /** Returns the number of the page that has an id, or would have it. */
  #pageOf(id: string): number {
    let [from, to] = [0, this.pages.length]
    while (from < to) {
      const middle = (from + to) >> 1
      if ((this.pages[middle] as EntryPage).last < id) from = middle + 1
      else to = middle
    }
    return from
  }
}

const MEMORY_BYTES = 8 * 1024 * 1024

/**
 * Encodes pages into a few large buffers. They can grow, and therefore have memory of their own, which the system gets
 * back as soon as a config is replaced. A buffer for each page would leave holes in the memory of the process.
 */
class PageMemory {
  #buffer = new ArrayBuffer(0, { maxByteLength: MEMORY_BYTES })

  encode(text: string): Uint8Array<ArrayBuffer> {
    const bytes = Buffer.byteLength(text)
    const at = this.#buffer.byteLength
    if (at + bytes > this.#buffer.maxByteLength) {
      this.#buffer = new ArrayBuffer(0, { maxByteLength: Math.max(bytes, MEMORY_BYTES) })
      return this.encode(text)
    }
    this.#buffer.resize(at + bytes)
    const encoded = new Uint8Array(this.#buffer, at, bytes)
    new TextEncoder().encodeInto(text, encoded)
    return encoded
  }
}

function entriesOf<Entry>({ json }: EntryPage): readonly Entry[] {
  return JSON.parse(new TextDecoder().decode(json))
}

function byIdOf<Entry extends { readonly id: string }>(
  entries: readonly Entry[],
): ReadonlyMap<string, Entry> {
  return new Map(entries.map((entry) => [entry.id, entry]))
}
