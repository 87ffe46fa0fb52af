import type { ModelKind } from '../../../lib/core/catalog/index.ts'
import { estimateTokens } from '../../../lib/core/operations/index.ts'
import { completionAnswer, embeddingAnswer, imageAnswer, rerankAnswer } from '../../support/endpoints.ts'

/** A call, its price, and what it is charged for. */
export interface UnitRow {
  readonly what: string
  readonly path: string
  readonly kind: ModelKind
  readonly price: Readonly<Record<string, string>>
  readonly model?: object
  readonly body: object
  readonly answer: object
  /** The usage in the call log, besides counts of zero. */
  readonly usage: object
  readonly reserved: string
  readonly charged: string
  /** The units that are charged. */
  readonly items: readonly string[]
}

const WORDS = 'The quick brown fox jumps over the lazy dog.'
export const TOKENS = estimateTokens(WORDS)
const NONE = { input_tokens: 0, cached_input_tokens: 0, cache_write_tokens: 0, output_tokens: 0 }
const usedTokens = (input_tokens: number, output_tokens = 0, cached_input_tokens = 0) => ({
  ...NONE,
  input_tokens,
  cached_input_tokens,
  output_tokens,
})
export const PER_TOKEN = {
  inputPerMillion: '1000000',
  outputPerMillion: '10000000',
  cachedInputPerMillion: '100000',
}
export const times = (count: number) => Array.from({ length: count }, () => WORDS)
const images = (count: number) => Array.from({ length: count }, () => ({ b64_json: 'iVBORw0KGgo=' }))
const imageUsage = { input_tokens: 7, output_tokens: 272, total_tokens: 279 }

const embedding = { path: '/v1/embeddings', kind: 'embedding' } as const
const image = { path: '/v1/images/generations', kind: 'image' } as const
const rerank = { path: '/v1/rerank', kind: 'rerank' } as const
const completion = { path: '/v1/completions', kind: 'chat' } as const

/** A price and an answer for each unit. */
export const UNIT_ROWS: readonly UnitRow[] = [
  {
    what: 'by the input that is reported, and for no output',
    ...embedding,
    price: { ...PER_TOKEN, perRequest: '0.5' },
    body: { input: [1, 2, 3, 4] },
    answer: embeddingAnswer([[1]], { usage: { prompt_tokens: 5, total_tokens: 5 } }),
    usage: { ...usedTokens(5), source: 'measured' },
    reserved: '5.5',
    charged: '5.5',
    items: ['input', 'request'],
  },
  {
    what: 'by the total where that alone is reported',
    ...embedding,
    price: PER_TOKEN,
    body: { input: [1, 2, 3, 4] },
    answer: embeddingAnswer([[1]], { usage: { total_tokens: 6 } }),
    usage: { ...usedTokens(6), source: 'measured' },
    reserved: '5',
    charged: '6',
    items: ['input'],
  },
  {
    what: 'by its estimated input where nothing is reported',
    ...embedding,
    price: PER_TOKEN,
    body: { input: [[1, 2], [3]] },
    answer: embeddingAnswer([[1], [2]], { usage: undefined }),
    usage: { ...usedTokens(3), source: 'estimated' },
    reserved: '3.75',
    charged: '3',
    items: ['input'],
  },
  {
    what: 'by the images that are delivered, not by those asked for',
    ...image,
    price: { perImage: '0.04' },
    body: { prompt: WORDS, n: 4 },
    answer: imageAnswer(images(3)),
    usage: { ...NONE, images: 3, source: 'measured' },
    reserved: '0.16',
    charged: '0.12',
    items: ['image'],
  },
  {
    what: 'by the image, and by input where that has a price and is reported',
    ...image,
    price: { perImage: '0.04', inputPerMillion: '1000000' },
    body: { prompt: 'a' },
    answer: imageAnswer(images(1), { usage: imageUsage }),
    usage: { ...usedTokens(7, 272), images: 1, source: 'measured' },
    reserved: '1.29',
    charged: '7.04',
    items: ['input', 'image'],
  },
  {
    what: 'by the image alone where no tokens are reported, whatever price they have',
    ...image,
    price: { perImage: '0.04', ...PER_TOKEN },
    model: { maxOutputTokens: 1 },
    body: { prompt: 'a' },
    answer: imageAnswer(images(1)),
    usage: { ...NONE, images: 1, source: 'measured' },
    reserved: '11.25',
    charged: '0.04',
    items: ['image'],
  },
  {
    what: 'by tokens and not by the image where tokens are reported and have a price',
    ...image,
    price: { perImage: '0.04', ...PER_TOKEN },
    model: { maxOutputTokens: 400 },
    body: { prompt: 'a', n: 2 },
    answer: imageAnswer(images(2), {
      usage: { ...imageUsage, input_tokens_details: { cached_tokens: 2 } },
    }),
    usage: { ...usedTokens(7, 272, 2), images: 2, source: 'measured' },
    reserved: '8001.25',
    charged: '2725.2',
    items: ['input', 'cached_input', 'output'],
  },
  {
    what: 'by an estimate where tokens alone have a price and are not reported',
    ...image,
    price: { outputPerMillion: '1000000' },
    body: { prompt: 'a', n: 2 },
    answer: imageAnswer(images(2), { quality: 'low', size: '1024x1536' }),
    usage: { ...usedTokens(1, 816), images: 2, source: 'estimated' },
    model: { maxOutputTokens: undefined },
    reserved: '12480',
    charged: '816',
    items: ['output'],
  },
  {
    what: 'by the request',
    ...rerank,
    price: { perRequest: '0.002' },
    body: { query: WORDS, documents: times(2) },
    answer: rerankAnswer([0.9, 0.1]),
    usage: { ...usedTokens(4 * TOKENS), search_units: 1, source: 'estimated' },
    reserved: '0.002',
    charged: '0.002',
    items: ['request'],
  },
  {
    what: 'by the searches that are reported',
    ...rerank,
    price: { perSearchUnit: '0.002' },
    body: { query: WORDS, documents: times(250) },
    answer: rerankAnswer([0.9], { meta: { billed_units: { search_units: 2 } } }),
    usage: { ...NONE, search_units: 2, source: 'measured' },
    reserved: '0.006',
    charged: '0.004',
    items: ['search_unit'],
  },
  {
    what: 'by the searches that it comes to where none are reported',
    ...rerank,
    price: { perSearchUnit: '0.002' },
    body: { query: WORDS, documents: [...times(100), ' the'.repeat(900)] },
    answer: { results: [{ index: 0, relevance_score: 1 }] },
    usage: { ...NONE, search_units: 2, source: 'estimated' },
    reserved: '0.004',
    charged: '0.004',
    items: ['search_unit'],
  },
  {
    what: 'by the searches that were held for where more are reported',
    ...rerank,
    price: { perSearchUnit: '0.002' },
    body: { query: 'a', documents: ['b'] },
    answer: rerankAnswer([1], { meta: { billed_units: { search_units: 5_000_000 } } }),
    usage: {
      ...NONE,
      search_units: 1,
      source: 'bounded',
      reported: { output_tokens: 0, search_units: 5_000_000 },
    },
    reserved: '0.002',
    charged: '0.002',
    items: ['search_unit'],
  },
  {
    what: 'by tokens where these are reported and have a price',
    ...rerank,
    price: { perSearchUnit: '0.002', inputPerMillion: '1000000' },
    body: { query: 'a', documents: ['b'] },
    answer: { object: 'list', data: [{ index: 0, relevance_score: 1 }], usage: { total_tokens: 9 } },
    usage: { ...usedTokens(9), source: 'measured' },
    reserved: '2.502',
    charged: '9',
    items: ['input'],
  },
  {
    what: 'by searches where tokens are reported and have no price',
    ...rerank,
    price: { perSearchUnit: '0.002' },
    body: { query: 'a', documents: ['b'] },
    answer: { results: [{ index: 0, relevance_score: 1 }], usage: { prompt_tokens: 9 } },
    usage: { ...usedTokens(9), search_units: 1, source: 'estimated' },
    reserved: '0.002',
    charged: '0.002',
    items: ['search_unit'],
  },
  {
    what: 'by its tokens, held for every text that is written',
    ...completion,
    price: { outputPerMillion: '1000000' },
    body: { prompt: ['a', 'b'], n: 2, best_of: 3, max_tokens: 10 },
    answer: completionAnswer('', { choices: times(4).map((text, index) => ({ text, index })) }),
    usage: { ...usedTokens(7, 3), source: 'measured' },
    reserved: '60',
    charged: '3',
    items: ['output'],
  },
  {
    what: 'by an estimate of its text where nothing is reported',
    ...completion,
    price: { outputPerMillion: '1000000' },
    body: { prompt: [1, 2], max_tokens: 10 },
    answer: completionAnswer(WORDS, { usage: undefined }),
    usage: { ...usedTokens(5, TOKENS), source: 'estimated' },
    reserved: '10',
    charged: String(TOKENS),
    items: ['output'],
  },
]
