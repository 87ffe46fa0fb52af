import { GatewayError } from '../../../core/errors/index.ts'
import { isJsonObject, type JsonObject } from '../../../core/json/index.ts'

/** Where the rows of an eval's run can come from. Any other source is what all accounts have stored at the line. */
const OWN_SOURCES: ReadonlySet<unknown> = new Set(['file_content', 'file_id'])

/** @throws {GatewayError} `unsupported_feature` for a run of an eval over what other accounts have stored, too. */
export function refuseForeignRows({ data_source: data }: JsonObject): void {
  const source = isJsonObject(data) ? data.source : undefined
  if (!isJsonObject(source) || OWN_SOURCES.has(source.type)) return
  throw new GatewayError('unsupported_feature', {
    param: 'data_source.source',
    message:
      'An eval cannot run over stored completions or responses. Send the rows, or name a file that has them.',
  })
}
