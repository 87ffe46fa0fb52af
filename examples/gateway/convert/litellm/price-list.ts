import { isId, MODES, readContextWindow, readFeatures } from './deployments.ts'
import { NO_COUNTERPART } from './hints.ts'
import { type Context, isMapping, type Mapping, Members, Notes } from './members.ts'
import { type Prices, readPrices } from './prices.ts'

/** A model of a config, made of an entry of LiteLLM's price list. */
interface PricedModel {
  readonly id: string
  readonly kind: string
  readonly contextWindow: number | undefined
  readonly maxOutputTokens: number | undefined
  readonly features: readonly string[] | undefined
  readonly price: Prices | undefined
}

/** The models of a price list. */
export interface ConvertedPrices {
  readonly models: readonly PricedModel[]
  /** One text for each thing that could not be carried over. */
  readonly notes: readonly string[]
}

/** The entry of the list that explains the members of the others. */
const SAMPLE = 'sample_spec'

/** Converts the content of LiteLLM's `model_prices_and_context_window.json`. */
export function convertPriceList(list: Mapping): ConvertedPrices {
  const context: Context = { notes: new Notes(), env: {} }
  const skipped = new Groups()
  const models: PricedModel[] = []
  for (const [name, entry] of Object.entries(list)) {
    if (name === SAMPLE) continue
    if (!isMapping(entry)) context.notes.add(name, 'is no mapping; left out')
    else if (!isId(name) || name.includes('*'))
      context.notes.add(name, 'must be printable ASCII without spaces and "*"; left out')
    else {
      const model = modelOf(name, entry, skipped, context)
      if (model) models.push(model)
    }
  }
  const unpriced = models.filter(({ price }) => price === undefined).map(({ id }) => id)
  if (unpriced.length > 0) context.notes.add('no price', `free until you set one: ${unpriced.join(', ')}`)
  for (const [what, names] of skipped) context.notes.add(what, `${NO_COUNTERPART}: ${names.join(', ')}`)
  return { models, notes: context.notes.lines }
}

/** The names of the models that have something, by what it is. */
class Groups extends Map<string, string[]> {
  note(what: string, name: string): void {
    this.set(what, [...(this.get(what) ?? []), name])
  }
}

function modelOf(id: string, entry: Mapping, skipped: Groups, context: Context): PricedModel | undefined {
  const members = new Members(entry, id, context)
  const mode = members.text('mode') ?? 'chat'
  const kind = MODES.get(mode)?.kind
  if (kind === undefined) {
    skipped.note(`mode ${mode}`, id)
    return undefined
  }
  const price = readPrices(new Members({}, id, context), members, kind)
  const most = members.count('max_output_tokens')
  const usual = members.count('max_tokens')
  const maxOutputTokens = kind === 'chat' ? (most ?? usual) : undefined
  const model = {
    id,
    kind,
    contextWindow: readContextWindow(members, kind, maxOutputTokens),
    maxOutputTokens,
    features: readFeatures(members),
    price: Object.keys(price).length > 0 ? price : undefined,
  }
  for (const name of members.names)
    if (/cost/.test(name) && entry[name] !== 0 && entry[name] !== null) skipped.note(name, id)
  return model
}
