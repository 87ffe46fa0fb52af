import type { DataEndpoint } from './data-endpoint.ts'
import { Fault } from './faults.ts'
import { asObject, type JsonObject, readCount, readText } from './prompt.ts'
import { newId } from './text-endpoint.ts'
import { countTokens } from './tokens.ts'

const DOCUMENTS_PER_SEARCH = 100

/** Serves `POST /v1/rerank`: the relevance of a document is the share of the query's words that it contains. */
export const rerank: DataEndpoint = {
  read(body) {
    const model = readText(body, 'model')
    const query = readText(body, 'query')
    const documents = readDocuments(body)
    const most = readCount(body, 'top_n', documents.length, documents.length)
    const inputTokens = documents.reduce((sum, text) => sum + countTokens(text) + countTokens(query), 0)
    return {
      model,
      inputTokens,
      answer(withheld) {
        const results = documents
          .map((text, index) => ({
            index,
            relevance_score: relevanceOf(text, query),
            ...(body.return_documents === true && { document: { text } }),
          }))
          .sort((a, b) => b.relevance_score - a.relevance_score)
        return {
          id: newId('rerank-'),
          model,
          results: withheld ? [] : results.slice(0, most),
          meta: { billed_units: { search_units: Math.ceil(documents.length / DOCUMENTS_PER_SEARCH) } },
        }
      },
    }
  },
}

function readDocuments({ documents }: JsonObject): string[] {
  const given = Array.isArray(documents) ? documents : []
  const texts = given.map((item: unknown) => (typeof item === 'string' ? item : asObject(item)?.text))
  if (texts.length === 0 || !texts.every((text) => typeof text === 'string')) {
    const message = 'documents: a list of strings, or of objects with a text, is required.'
    throw new Fault('invalid_request', { message, param: 'documents' })
  }
  return texts
}

function relevanceOf(text: string, query: string): number {
  const words = wordsOf(query)
  const own = new Set(wordsOf(text))
  return words.filter((word) => own.has(word)).length / Math.max(1, words.length)
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
}
