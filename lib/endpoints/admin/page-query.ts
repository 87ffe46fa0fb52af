import { z } from 'zod'
import { pageMembers } from '../../core/json-api/index.ts'

/** The query of lists without filters. */
export const pageQuery = z.strictObject(pageMembers())

/** The query of lists that an account selects from. */
export const accountPageQuery = pageQuery.extend({
  account: z.string({ error: 'must be the id of an account, sent once' }).optional(),
})
